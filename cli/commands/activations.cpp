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
  document.data = object({{"file", options.output}, {"sentences", sentences}});
  note_written(document, options.output);
  return document;
}

}  // namespace

Command activations_command() {
  const auto o = std::make_shared<ActivationsOptions>();
  return {
      .name = "activations",
      .summary =
          "Write what a model computes for each sentence of a file as HDF5: residual states, "
          "queries, keys, values, attention weights",
      .options = {model_argument(o->model),
                  required({"--data FILE", &o->data, "File in the task's format"}),
                  required({"-o,--output FILE", &o->output, "File to write, which must not exist"}),
                  threads_option()},
      .run = [o](const Stream&) { return activations(*o); }};
}

}  // namespace qkv::commands
