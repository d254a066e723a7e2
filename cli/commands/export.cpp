#include <algorithm>

#include "cli/commands/shared.h"
#include "inspect/cpp_export.h"
#include "inspect/onnx_export.h"
#include "train/exchange/exchange.h"
#include "train/storage/durable_file.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::string model;
  std::string safetensors, onnx, cpp;
  bool int8 = false;
  std::string names = "qkv";
};

ExportNames chosen_names(const ExportOptions& options) {
  const auto found = std::ranges::find(export_names, options.names, &Kind<ExportNames>::name);
  require<UserError>(found != export_names.end(), "--names {}: must be qkv or torch",
                     options.names);
  return found->value;
}

Document export_model(const ExportOptions& options) {
  require<UserError>(!options.safetensors.empty() || !options.onnx.empty() || !options.cpp.empty(),
                     "name the file to write with --safetensors FILE, --onnx FILE or --cpp FILE");
  require<UserError>(!options.int8 || !options.cpp.empty(),
                     "--int8 has an effect on a C++ header alone; name its file with --cpp FILE");
  const fs::path file = find_checkpoint(options.model);
  const Checkpoint checkpoint = read_valid_checkpoint(file);
  const SavedModel model = model_of(checkpoint, file);
  Document document;
  if (const auto models = ensemble_of(options.model); models.size() > 1)
    document.add_note("{} is an ensemble of {} models, of which the first is exported",
                      options.model, models.size());
  const auto contents_for = [&](const fs::path& output) {
    return exported(checkpoint, file, output.parent_path(), chosen_names(options));
  };
  const auto write = [&](const fs::path& output, const std::string& bytes, const ResultKind& kind) {
    write_result(output, bytes, kind);
    document.data["files"].push_back(object({{"file", output.string()}, {"bytes", bytes.size()}}));
    note_written(document, output);
  };
  if (!options.safetensors.empty())
    write(options.safetensors, safetensors_bytes(contents_for(options.safetensors)),
          {"safetensors that qkv export wrote", begins_as_export});
  if (!options.onnx.empty())
    write(options.onnx, onnx_bytes(model, contents_for(options.onnx).metadata),
          {"an ONNX model that qkv export wrote", begins_as_onnx_export});
  if (!options.cpp.empty())
    write(options.cpp,
          cpp_header(model, options.cpp, options.int8 ? CppWeights::int8 : CppWeights::float32),
          {"a C++ header that qkv export wrote", begins_as_cpp_export});
  return document;
}

}  // namespace

Command export_command() {
  const auto o = std::make_shared<ExportOptions>();
  return {.name = "export",
          .summary = "Write a model as a file that other programs read",
          .options = {model_argument(o->model),
                      {"--safetensors FILE", &o->safetensors,
                       "Write the parameters as safetensors, with the config and vocabulary in the "
                       "metadata, so that qkv import reads it back"},
                      {"--onnx FILE", &o->onnx,
                       "Write the model as ONNX, operator set 17, with dynamic batch and length, "
                       "and the attention weights as further outputs"},
                      {"--cpp FILE", &o->cpp,
                       "Write the model as a C++17 header that needs the standard library alone, "
                       "with predict, translate or generate in the namespace qkv_NAME of "
                       "NAME.h"},
                      {"--int8", &o->int8,
                       "With --cpp: weights of linear layers and embeddings as int8 with a scale "
                       "for each row"},
                      {"--names qkv|torch", &o->names,
                       "Names of the parameters in safetensors: qkv, or torch as in "
                       "torch.nn.TransformerEncoder [qkv]"}},
          .run = [o](const Stream&) { return export_model(*o); }};
}

}  // namespace qkv::commands
