#include "train/tasks/generate.h"

#include <chrono>

#include "cli/commands/shared.h"

namespace qkv::commands {
namespace {

struct GenerateOptions {
  std::string model;
  std::string prompt = "\n";
  Index tokens = 500;
  Sampling sampling;
};

Document continue_text(const GenerateOptions& options, const Stream& stream) {
  const LoadedModel trained = load_model(options.model);
  require<UserError>(trained.config.task.kind == TaskKind::language_model &&
                         trained.config.model.kind == ModelKind::decoder,
                     "{} was not trained to continue a text; generate needs task.kind = "
                     "\"language-model\" and model.kind = \"decoder\"",
                     options.model);
  const Sentence prompt = read_sentence(*trained.task, options.prompt);
  Sampling sampling = options.sampling;
  sampling.reserved = trained.task->vocabulary().reserved();
  const bool words = trained.task->tokenizer().cutting().kind == TokenizerKind::word;
  std::string text;
  stream(options.prompt);
  const auto start = std::chrono::steady_clock::now();
  generate(*trained.network, prompt.ids, options.tokens, trained.config.model.max_length, sampling,
           [&](std::int32_t token) {
             const std::int32_t ids[] = {token};
             std::string written = trained.task->tokenizer().decode(ids);
             if (words && !text.empty()) written = " " + written;
             text += written;
             stream(written);
           });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  Document document;
  document.data = {{"prompt", options.prompt},
                   {"text", text},
                   {"tokens", options.tokens},
                   {"seconds", seconds.count()}};
  document.add_text("\n");
  note_unknown_words(document, *trained.task, std::span(&prompt, 1));
  return document;
}

}  // namespace

void add_generate(CommandLine& program) {
  add_command<GenerateOptions>(
      program, "generate", "Continue a text with a language model",
      [](Command& command, GenerateOptions& options) {
        add_model_argument(command, options.model);
        command.add_option("--prompt", options.prompt, "What the text begins with [a new line]");
        command.add_option("--tokens", options.tokens, "How many tokens to write [500]")
            .between(1, 1'000'000);
        Sampling& sampling = options.sampling;
        command
            .add_option("--temperature", sampling.temperature,
                        "Divides the logits; 0 takes the most probable token [1]")
            .between(0.0, 100.0);
        command.add_option("--top-k", sampling.top_k, "Only the k most probable tokens; 0: all [0]")
            .between(0, 1'000'000);
        command
            .add_option("--top-p", sampling.top_p,
                        "Nucleus sampling: only the most probable tokens that reach this "
                        "probability together "
                        "[1]")
            .between(1e-9, 1.0);
        command.add_option("--seed", sampling.seed, "Equal seeds give equal texts [1]");
        add_threads_option(command);
      },
      continue_text);
}

}  // namespace qkv::commands
