#include "cli/commands/shared.h"
#include "train/storage/content_hash.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct VerifyOptions {
  std::string model;
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

/// The number of elements of the model that the config describes; of a module of a program's own,
/// which has no config, of all tensors.
Index parameter_count_of(const Checkpoint& checkpoint, const fs::path& file) {
  if (has_task(checkpoint.config, file.string()))
    return parameter_count(*model_of(checkpoint, file).network);
  Index count = 0;
  for (const auto& [path, value] : checkpoint.model) count += value.size();
  return count;
}

/// Adds what reading a checkpoint as `resume` does finds: its seal, then its structure and
/// values, then the model that its config describes.
void add_verdict(Document& document, const fs::path& file) {
  Json& files = document.data["files"];
  try {
    const Checkpoint checkpoint = read_valid_checkpoint(file);
    const Index count = parameter_count_of(checkpoint, file);
    const std::string checksum = checksum_of(checkpoint.model);
    files.push_back(object({{"file", file.string()},
                            {"ok", true},
                            {"step", checkpoint.step},
                            {"numbers", count},
                            {"parameters_checksum", checksum}}));
    document.add_text("{}: valid, step {}, {} parameters with checksum {}\n", file.string(),
                      checkpoint.step, count, checksum);
  } catch (const Error& error) {
    files.push_back(object({{"file", file.string()}, {"ok", false}, {"error", error.what()}}));
    document.add_note("{}", error.what());
    document.exit_code = 1;
  }
}

Document verify(const VerifyOptions& options) {
  Document document;
  Notes notes(document);
  document.data["files"] = Json::array();
  const std::vector<fs::path> all = files_of(options.model);
  for (std::size_t i = 0; i < all.size(); ++i) {
    notes.on_item("verifying", i, all.size());
    add_verdict(document, all[i]);
  }
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
