#include "train/tasks/generate.h"

#include <chrono>

#include "cli/commands/shared.h"
#include "datasets/text.h"

namespace qkv::commands {
namespace {

struct GenerateOptions {
  std::string model;
  std::string prompt = "\n";
  Index tokens = 500;
  Sampling sampling;
};

/// The prompt's tokens; of more than the model reads at once the last ones, with a note.
Sentence read_prompt(const LoadedModel& trained, const std::string& text, Document& document) {
  require<UserError>(is_utf8(text), "the prompt is not valid UTF-8");
  const Tokenizer& tokenizer = trained.task->tokenizer();
  Sentence prompt = trained.task->sentence_of(pieces_of(text, tokenizer.cutting()));
  require<UserError>(!prompt.ids.empty(),
                     "the prompt has no token that the model reads; begin the text with --prompt");
  const Index longest = trained.config.model.max_length, count = std::ssize(prompt.ids);
  if (count <= longest) return prompt;
  document.add_note("the prompt has {} tokens; the model reads the last model.max_length = {}",
                    count, longest);
  prompt.ids.erase(prompt.ids.begin(), prompt.ids.end() - longest);
  prompt.words.erase(prompt.words.begin(), prompt.words.end() - longest);
  return prompt;
}

/// A token as it continues a text whose last token is `before`.
std::string continuation(const Tokenizer& tokenizer, std::int32_t before, std::int32_t token) {
  const std::int32_t both[] = {before, token};
  return tokenizer.decode(both).substr(tokenizer.decode(std::span(both).first(1)).size());
}

Document continue_text(const GenerateOptions& options, const Stream& stream) {
  const LoadedModel trained = load_model(options.model);
  require<UserError>(trained.config.task.kind == TaskKind::language_model &&
                         trained.config.model.kind == ModelKind::decoder,
                     "{} was not trained to continue a text; generate needs task.kind = "
                     "\"language-model\" and model.kind = \"decoder\"",
                     options.model);
  Document document;
  const Sentence prompt = read_prompt(trained, options.prompt, document);
  const Tokenizer& tokenizer = trained.task->tokenizer();
  Sampling sampling = options.sampling;
  sampling.reserved = trained.task->vocabulary().reserved();
  sampling.ends = end_of_text_tokens(trained.task->vocabulary());
  std::int32_t last = prompt.ids.back();
  const TokenizerKind kind = tokenizer.cutting().kind;
  // Between words a text has white space that is no token.
  const bool is_spaced = (kind == TokenizerKind::word || kind == TokenizerKind::word_piece) &&
                         !options.prompt.ends_with(trimmed(options.prompt));
  Index written_tokens = 0;
  std::string text;
  stream(options.prompt);
  const auto start = std::chrono::steady_clock::now();
  generate(*trained.network, prompt.ids, options.tokens, trained.config.model.max_length, sampling,
           [&](std::int32_t token) {
             std::string written = continuation(tokenizer, last, token);
             if (is_spaced && text.empty() && written.starts_with(' ')) written.erase(0, 1);
             last = token;
             ++written_tokens;
             text += written;
             stream(written);
           });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  document.data = object({{"prompt", options.prompt},
                          {"text", text},
                          {"tokens", written_tokens},
                          {"seconds", seconds.count()}});
  document.add_text("\n");
  note_unknown_words(document, *trained.task, std::span(&prompt, 1));
  return document;
}

}  // namespace

Command generate_command() {
  const auto o = std::make_shared<GenerateOptions>();
  return {.name = "generate",
          .summary = "Continue a text with a language model",
          .options = {model_argument(o->model),
                      {"--prompt", &o->prompt, "Beginning of the text [a new line]"},
                      {"--tokens", &o->tokens,
                       "Maximum number of tokens; an end-of-text token ends the text earlier [500]",
                       from_to(1, 1'000'000)},
                      {"--temperature", &o->sampling.temperature,
                       "Divides the logits; 0 takes the most probable token [1]", from_to(0, 100)},
                      {"--top-k", &o->sampling.top_k, "Only the k most probable tokens; 0: all [0]",
                       from_to(0, 1'000'000)},
                      {"--top-p",
                       &o->sampling.top_p,
                       "Nucleus sampling: only the most probable tokens that reach this "
                       "probability together [1]",
                       {0, 1, true}},
                      {"--seed", &o->sampling.seed, "Equal seeds give equal texts [1]"},
                      threads_option()},
          .run = [o](const Stream& stream) { return continue_text(*o, stream); }};
}

}  // namespace qkv::commands
