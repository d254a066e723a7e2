#include <fmt/ranges.h>

#include "cli/commands/training.h"
#include "train/exchange/exchange.h"
#include "train/exchange/huggingface.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct ImportOptions {
  std::string file;
  std::string run;
};

Document import_model(const ImportOptions& options) {
  Document document;
  ForeignModel model;
  if (fs::is_directory(options.file))
    model = read_huggingface(options.file);
  else
    model.checkpoint = imported(read_safetensors(options.file), options.file);
  const Checkpoint& checkpoint = model.checkpoint;
  const Config config = config_of(checkpoint, options.file);
  RunFolder folder(options.run.empty() ? fs::path("runs") / config.name : fs::path(options.run));
  folder.lock();
  start_from(checkpoint, config, folder);
  document.data = object({{"run", folder.path().string()}, {"tensors", checkpoint.model.size()}});
  if (!model.not_used.empty()) {
    document.data["not_used"] = model.not_used;
    document.add_note("not used: {}", fmt::join(model.not_used, ", "));
  }
  if (!model.added_tokens.empty()) {
    document.data["added_tokens"] = model.added_tokens;
    document.add_note(
        "added tokens, which are in the vocabulary; text that spells one is cut like "
        "other text: {}",
        fmt::join(model.added_tokens, ", "));
  }
  note_written(document, folder.path());
  return document;
}

}  // namespace

Command import_command() {
  const auto o = std::make_shared<ImportOptions>();
  return {
      .name = "import",
      .summary = "Make a run of a file that qkv export --safetensors wrote, or of a BERT or GPT-2",
      .options = {required(
                      {"FILE", &o->file,
                       "safetensors file; its parameters may have been changed since, and qkv "
                       "resume trains them from step 0. Or a folder with config.json, "
                       "model.safetensors and the tokenizer's files as Hugging Face names them"}),
                  {"--run FOLDER", &o->run, "Folder of the run [runs/NAME]"}},
      .run = [o](const Stream&) { return import_model(*o); }};
}

}  // namespace qkv::commands
