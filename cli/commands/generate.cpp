#include "inspect/documents/generate.h"

#include <chrono>

#include "cli/commands/shared.h"
#include "core/packed_weights.h"

namespace qkv::commands {
namespace {

struct GenerateOptions {
  std::string model;
  std::string prompt = "\n";
  Index tokens = 500;
  Sampling sampling;
  bool int8 = false;
};

Document continue_text(const GenerateOptions& options, const Stream& stream) {
  const LoadedModel trained = load_model(options.model);
  Document document;
  Notes notes(document);
  const Sentence prompt = read_prompt(trained, options.prompt, notes);
  PackedWeights weights(options.int8 ? WeightFormat::int8 : WeightFormat::float32);
  const PackedWeights::Use use(weights);
  stream(options.prompt);
  const auto start = std::chrono::steady_clock::now();
  document.data = documents::generate(trained, options.prompt, prompt, options.tokens,
                                      options.sampling, {}, stream);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  document.data["seconds"] = seconds.count();
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
                      int8_flag(o->int8),
                      threads_option()},
          .run = [o](const Stream& stream) { return continue_text(*o, stream); }};
}

}  // namespace qkv::commands
