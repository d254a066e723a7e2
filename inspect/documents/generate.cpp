#include "inspect/documents/generate.h"

#include "datasets/text.h"

namespace qkv::documents {
namespace {

/// A token as it continues a text whose last token is `before`.
std::string continuation(const Tokenizer& tokenizer, std::int32_t before, std::int32_t token) {
  const std::int32_t both[] = {before, token};
  return tokenizer.decode(both).substr(tokenizer.decode(std::span(both).first(1)).size());
}

}  // namespace

Sentence read_prompt(const LoadedModel& trained, const std::string& text, ReadCallback& callback) {
  require<UserError>(is_utf8(text), "the prompt is not valid UTF-8");
  const Tokenizer& tokenizer = trained.task->tokenizer();
  Sentence prompt = trained.task->sentence_of(pieces_of(text, tokenizer.cutting()));
  require<UserError>(!prompt.ids.empty(),
                     "the prompt has no token that the model reads; begin the text with --prompt");
  const Index longest = trained.config.model.max_length, count = std::ssize(prompt.ids);
  if (count <= longest) return prompt;
  callback.on_message(fmt::format(
      "the prompt has {} tokens; the model reads the last model.max_length = {}", count, longest));
  const auto left_out = static_cast<std::ptrdiff_t>(count - longest);
  prompt.ids.erase(prompt.ids.begin(), prompt.ids.begin() + left_out);
  prompt.words.erase(prompt.words.begin(), prompt.words.begin() + left_out);
  return prompt;
}

Json generate(const LoadedModel& trained, const std::string& text, const Sentence& prompt,
              Index count, Sampling sampling, const std::vector<Replacement>& replaced,
              const std::function<void(std::string_view)>& pass_on) {
  const Tokenizer& tokenizer = trained.task->tokenizer();
  sampling.reserved = trained.task->vocabulary().reserved();
  sampling.ends = end_of_text_tokens(trained.task->vocabulary());
  std::int32_t last = prompt.ids.back();
  const TokenizerKind kind = tokenizer.cutting().kind;
  // Between words a text has white space that is no token.
  const bool is_spaced = (kind == TokenizerKind::word || kind == TokenizerKind::word_piece) &&
                         !text.ends_with(trimmed(text));
  Index written_tokens = 0;
  std::string continued;
  const Hook hook = hook_of(replaced);
  qkv::generate(
      *trained.network, prompt.ids, count, trained.config.model.max_length, sampling,
      [&](std::int32_t token) {
        std::string written = continuation(tokenizer, last, token);
        if (is_spaced && continued.empty() && written.starts_with(' ')) written.erase(0, 1);
        last = token;
        ++written_tokens;
        continued += written;
        pass_on(written);
      },
      &hook);
  return object({{"prompt", text}, {"text", continued}, {"tokens", written_tokens}});
}

}  // namespace qkv::documents
