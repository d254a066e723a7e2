#include "train/inference/continuation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "datasets/text.h"

namespace qkv {
namespace {

/// A token as it continues a text whose last token is `before`.
std::string continued_by(const Tokenizer& tokenizer, std::int32_t before, std::int32_t token) {
  const std::int32_t both[] = {before, token};
  return tokenizer.decode(both).substr(tokenizer.decode(std::span(both).first(1)).size());
}

/// A continuation that grows by tokens.
class Writer {
 public:
  Writer(const LoadedModel& trained, std::string_view text, const Sentence& prompt)
      : tokenizer_(trained.task->tokenizer()), last_(prompt.ids.back()) {
    const TokenizerKind kind = tokenizer_.cutting().kind;
    is_spaced_ = (kind == TokenizerKind::word || kind == TokenizerKind::word_piece) &&
                 !text.ends_with(trimmed(text));
  }

  /// The token's text.
  std::string add(std::int32_t token) {
    std::string next = continued_by(tokenizer_, last_, token);
    if (is_spaced_ && written_.text.empty() && next.starts_with(' ')) next.erase(0, 1);
    last_ = token;
    ++written_.tokens;
    written_.text += next;
    return next;
  }
  const Continuation& written() const { return written_; }

 private:
  const Tokenizer& tokenizer_;
  std::int32_t last_;
  bool is_spaced_;  ///< the prompt ends with white space, which is no token between words
  Continuation written_;
};

Sampling for_vocabulary(Sampling sampling, const Vocabulary& vocabulary) {
  sampling.reserved = vocabulary.reserved();
  sampling.ends = end_of_text_tokens(vocabulary);
  return sampling;
}

}  // namespace

bool continues_text(const Config& config) {
  return config.task.kind == TaskKind::language_model;
}

void require_continuing(const Config& config) {
  require<UserError>(continues_text(config),
                     "the model was not trained to continue a text; generate needs task.kind = "
                     "\"language-model\"");
}

Prompt read_prompt(const LoadedModel& trained, std::string_view text, ReadCallback& callback) {
  require_continuing(trained.config);
  require<UserError>(is_utf8(text), "the prompt is not valid UTF-8");
  const Tokenizer& tokenizer = trained.task->tokenizer();
  Sentence tokens = trained.task->sentence_of(pieces_of(text, tokenizer.cutting()));
  require<UserError>(!tokens.ids.empty(),
                     "the prompt has no token that the model reads; give it a word");
  const Index longest = trained.config.model.max_length, count = std::ssize(tokens.ids);
  if (count <= longest) return {std::string(text), std::move(tokens)};
  callback.on_message(fmt::format(
      "the prompt has {} tokens; the model reads the last model.max_length = {}", count, longest));
  const auto left_out = static_cast<std::ptrdiff_t>(count - longest);
  tokens.ids.erase(tokens.ids.begin(), tokens.ids.begin() + left_out);
  tokens.words.erase(tokens.words.begin(), tokens.words.begin() + left_out);
  return {std::string(text), std::move(tokens)};
}

Continuation continuation_of(const LoadedModel& trained, const Prompt& prompt, Index count,
                             const Sampling& sampling,
                             const std::function<void(std::string_view)>& pass_on,
                             const Hook* hook) {
  Writer writer(trained, prompt.text, prompt.tokens);
  generate(
      *trained.network, prompt.tokens.ids, count, trained.config.model.max_length,
      for_vocabulary(sampling, trained.task->vocabulary()),
      [&](std::int32_t token) { pass_on(writer.add(token)); }, hook);
  return writer.written();
}

std::vector<Continuation> continuations_of(const LoadedModel& trained,
                                           std::span<const Prompt> prompts, Index count,
                                           const Sampling& sampling) {
  const Index window = trained.config.model.max_length;
  // Bounds the memory of cached keys and values.
  constexpr Index most_tokens = 8192;
  const auto most = static_cast<std::size_t>(std::max<Index>(most_tokens / window, 1));
  const Sampling with_ends = for_vocabulary(sampling, trained.task->vocabulary());
  std::map<std::size_t, std::vector<std::size_t>> by_length;
  std::vector<Writer> writers;
  for (std::size_t i = 0; const Prompt& prompt : prompts) {
    by_length[prompt.tokens.ids.size()].push_back(i++);
    writers.emplace_back(trained, prompt.text, prompt.tokens);
  }
  for (const auto& [length, all] : by_length)
    for (auto rest = std::span(all); !rest.empty();
         rest = rest.subspan(std::min(most, rest.size()))) {
      const auto batch = rest.first(std::min(most, rest.size()));
      std::vector<std::vector<std::int32_t>> tokens;
      for (const std::size_t i : batch) tokens.push_back(prompts[i].tokens.ids);
      generate_batch(*trained.network, std::move(tokens), count, window, with_ends,
                     [&](std::size_t i, std::int32_t token) { writers[batch[i]].add(token); });
    }
  std::vector<Continuation> written;
  written.reserve(writers.size());
  for (const Writer& writer : writers) written.push_back(writer.written());
  return written;
}

}  // namespace qkv
