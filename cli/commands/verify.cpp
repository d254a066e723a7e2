#include "cli/commands/shared.h"
#include "train/storage/run_folder.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct VerifyOptions {
  std::string model;
};

struct Verdict {
  fs::path file;
  std::string error;  ///< empty when the file is valid
  std::int64_t step = 0;
  Index parameters = 0;
};

/// Every checkpoint of a run folder, or the one file.
std::vector<fs::path> files_of(const fs::path& model) {
  std::error_code error;
  const bool exists = fs::exists(model, error);
  require<UserError>(exists, "{}: {}", model.string(),
                     error ? error.message() : "there is no such file or folder");
  if (!fs::is_directory(model, error)) return {model};
  const RunFolder folder(model);
  require_run(folder);
  auto files = folder.checkpoints();
  std::ranges::reverse(files);
  for (const fs::path& file : folder.names()) files.push_back(file);
  return files;
}

/// Reads a checkpoint as `resume` does: its checksum, then its structure and values, then the model
/// that its config describes.
Verdict verified(const fs::path& file) {
  try {
    const LoadedModel trained = model_of(read_valid_checkpoint(file), file);
    return {file, "", trained.step, parameter_count(*trained.network)};
  } catch (const Error& error) {
    return {file, error.what()};
  }
}

Document verify(const VerifyOptions& options) {
  Document document;
  Notes notes(document);
  std::vector<Verdict> verdicts;
  const std::vector<fs::path> all = files_of(options.model);
  for (const fs::path& file : all) {
    notes.on_item("verifying", verdicts.size(), all.size());
    verdicts.push_back(verified(file));
  }
  const auto damaged =
      std::ranges::count_if(verdicts, [](const Verdict& v) { return !v.error.empty(); });
  Json& files = document.data["files"] = Json::array();
  for (const auto& [file, error, step, count] : verdicts) {
    if (error.empty()) {
      files.push_back(
          object({{"file", file.string()}, {"ok", true}, {"step", step}, {"numbers", count}}));
      document.add_text("{}: valid, step {}, {} parameters\n", file.string(), step, count);
    } else {
      files.push_back(object({{"file", file.string()}, {"ok", false}, {"error", error}}));
      document.add_note("{}", error);
    }
  }
  document.exit_code = damaged > 0 ? 1 : 0;
  return document;
}

}  // namespace

Command verify_command() {
  const auto o = std::make_shared<VerifyOptions>();
  return {.name = "verify",
          .summary = "Check the checksum and the structure of checkpoints",
          .options = {required(
              {"MODEL", &o->model, "A checkpoint file, or a run folder: all of its checkpoints"})},
          .run = [o](const Stream&) { return verify(*o); }};
}

}  // namespace qkv::commands
