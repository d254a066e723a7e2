#include "train/inference/continuation.h"

#include <fmt/format.h>

#include "datasets/text.h"

namespace qkv {
namespace {

/// A token as it continues a text whose last token is `before`.
std::string continued_by(const Tokenizer& tokenizer, std::int32_t before, std::int32_t token) {
  const std::int32_t both[] = {before, token};
  return tokenizer.decode(both).substr(tokenizer.decode(std::span(both).first(1)).size());
}

}  // namespace

bool continues_text(const Config& config) {
  return config.task.kind == TaskKind::language_model;
}

Sentence read_prompt(const LoadedModel& trained, std::string_view text, ReadCallback& callback) {
  require<UserError>(continues_text(trained.config),
                     "the model was not trained to continue a text; generate needs task.kind = "
                     "\"language-model\"");
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

Continuation continuation_of(const LoadedModel& trained, std::string_view text,
                             const Sentence& prompt, Index count, Sampling sampling,
                             const std::function<void(std::string_view)>& pass_on,
                             const Hook* hook) {
  const Tokenizer& tokenizer = trained.task->tokenizer();
  sampling.reserved = trained.task->vocabulary().reserved();
  sampling.ends = end_of_text_tokens(trained.task->vocabulary());
  std::int32_t last = prompt.ids.back();
  const TokenizerKind kind = tokenizer.cutting().kind;
  // Between words a text has white space that is no token.
  const bool is_spaced = (kind == TokenizerKind::word || kind == TokenizerKind::word_piece) &&
                         !text.ends_with(trimmed(text));
  Continuation written;
  generate(
      *trained.network, prompt.ids, count, trained.config.model.max_length, sampling,
      [&](std::int32_t token) {
        std::string next = continued_by(tokenizer, last, token);
        if (is_spaced && written.text.empty() && next.starts_with(' ')) next.erase(0, 1);
        last = token;
        ++written.tokens;
        written.text += next;
        pass_on(next);
      },
      hook);
  return written;
}

}  // namespace qkv
