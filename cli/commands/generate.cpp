#include "inspect/documents/generate.h"

#include <chrono>
#include <utility>

#include "cli/commands/shared.h"
#include "core/packed_weights.h"

namespace qkv::commands {
namespace {

struct GenerateOptions {
  std::string model;
  std::string prompt = "\n", file;
  Index tokens = 500;
  Sampling sampling;
  bool int8 = false;
};

void continue_prompt(const GenerateOptions& options, const LoadedModel& trained, Document& document,
                     const Stream& stream) {
  Notes notes(document);
  const Prompt prompt = read_prompt(trained, options.prompt, notes);
  stream(prompt.text);
  document.data =
      documents::generate(trained, prompt, options.tokens, options.sampling, {}, stream);
  document.add_text("\n");
  note_unknown_words(document, *trained.task, std::span(&prompt.tokens, 1));
}

/// The prompts of a file; those that the model cannot read are noted.
std::vector<Prompt> prompts_of(const std::string& file, const LoadedModel& trained,
                               Document& document) {
  std::vector<Prompt> prompts;
  for (const Question& line : lines_of(file, document)) {
    Notes notes(document, line.place + ": ");
    try {
      prompts.push_back(read_prompt(trained, line.text, notes));
    } catch (const UserError& error) {
      notes.on_message(error.what());
      document.exit_code = wrong_data;
    }
  }
  return prompts;
}

void continue_lines(const GenerateOptions& options, const LoadedModel& trained,
                    Document& document) {
  const std::vector<Prompt> prompts = prompts_of(options.file, trained, document);
  const auto written = continuations_of(trained, prompts, options.tokens, options.sampling);
  std::vector<Sentence> read;
  Json continuations = Json::array();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    continuations.push_back(documents::continuation(prompts[i], written[i]));
    document.add_text("{}{}{}\n", i ? "\n" : "", prompts[i].text, written[i].text);
    read.push_back(prompts[i].tokens);
  }
  document.data = object({{"continuations", std::move(continuations)}});
  note_unknown_words(document, *trained.task, read);
}

Document continue_text(const GenerateOptions& options, const Stream& stream) {
  require<UserError>(options.prompt == GenerateOptions().prompt || options.file.empty(),
                     "give --prompt or --file, one of the two");
  const LoadedModel trained = load_model(options.model);
  require_continuing(trained.config);
  PackedWeights weights(options.int8 ? WeightFormat::int8 : WeightFormat::float32);
  const PackedWeights::Use use(weights);
  Document document;
  const auto start = std::chrono::steady_clock::now();
  if (options.file.empty())
    continue_prompt(options, trained, document, stream);
  else
    continue_lines(options, trained, document);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  document.data["seconds"] = seconds.count();
  return document;
}

}  // namespace

Command generate_command() {
  const auto o = std::make_shared<GenerateOptions>();
  return {.name = "generate",
          .summary = "Continue a text with a language model",
          .options = {model_argument(o->model),
                      {"--prompt", &o->prompt, "Beginning of the text [a new line]"},
                      {"--file FILE", &o->file,
                       "File with a prompt a line, which are continued side by side; a line that "
                       "the model cannot read is named, and the exit code is 2"},
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
