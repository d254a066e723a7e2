#include "inspect/activations.h"

#include "cli/commands/shared.h"

namespace qkv::commands {
namespace {

struct ActivationsOptions {
  std::string model;
  std::string data;
  std::string output;
};

Document activations(const ActivationsOptions& options) {
  const LoadedModel model = load_model(options.model);
  Document document;
  Notes notes(document);
  const Index sentences = write_activations(model, options.data, options.output, notes);
  document.data = {{"file", options.output}, {"sentences", sentences}};
  note_written(document, options.output);
  return document;
}

}  // namespace

void add_activations(CommandLine& program) {
  add_command<ActivationsOptions>(
      program, "activations",
      "Write what a model computes for each sentence of a file as HDF5: residual states, queries, "
      "keys, values, attention weights",
      [](Command& command, ActivationsOptions& options) {
        add_model_argument(command, options.model);
        command.add_option("--data FILE", options.data, "File in the task's format").required();
        command
            .add_option("-o,--output FILE", options.output, "File to write, which must not exist")
            .required();
        add_threads_option(command);
      },
      activations);
}

}  // namespace qkv::commands
