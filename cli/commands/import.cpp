#include "cli/commands/training.h"
#include "train/exchange.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct ImportOptions {
  std::string file;
  std::string run;
};

Document import_model(const ImportOptions& options) {
  const Checkpoint checkpoint = imported(read_safetensors(options.file), options.file);
  const Config config = config_of(checkpoint, options.file);
  const RunFolder folder(options.run.empty() ? fs::path("runs") / config.name
                                             : fs::path(options.run));
  const RunLock lock(folder.path());
  start_from(checkpoint, config, folder);
  Document document;
  document.data = {{"run", folder.path().string()}, {"tensors", checkpoint.model.size()}};
  note_written(document, folder.path());
  return document;
}

}  // namespace

void add_import(CommandLine& program) {
  add_command<ImportOptions>(
      program, "import", "Make a run of a file that qkv export --safetensors wrote",
      [](Command& command, ImportOptions& options) {
        command
            .add_option("FILE", options.file,
                        "safetensors file; its parameters may have been changed since, and "
                        "qkv resume trains them from step 0")
            .required();
        command.add_option("--run FOLDER", options.run, "Folder of the run [runs/NAME]");
      },
      import_model);
}

}  // namespace qkv::commands
