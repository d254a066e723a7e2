#include "train/storage/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "train/storage/durable_file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

bool is_step_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("step-") && name.ends_with(".h5") && name.size() > 8 &&
         std::all_of(name.begin() + 5, name.end() - 3, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

fs::path RunFolder::checkpoint(std::int64_t step) const {
  return root_ / "checkpoints" / fmt::format("step-{:08}.h5", step);
}

std::vector<fs::path> RunFolder::checkpoints() const {
  std::vector<fs::path> found;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(root_ / "checkpoints", missing))
    if (is_step_file(entry.path())) found.push_back(entry.path());
  std::ranges::sort(found, std::greater());
  return found;
}

bool RunFolder::holds_checkpoints() const {
  return fs::exists(best()) || fs::exists(last()) || !checkpoints().empty();
}

void RunFolder::create() const {
  require<UserError>(!holds_checkpoints(),
                     "{} already holds a run; continue it with `qkv resume {}`, remove the folder, "
                     "or choose another with --run",
                     root_.string(), root_.string());
  std::error_code error;
  fs::remove(metrics(), error);  // of a run that ended before its first checkpoint
  fs::create_directories(root_ / "checkpoints", error);
  require<FileError>(!error, "cannot create the run folder {}: {}", root_.string(),
                     error.message());
}

void RunFolder::clear() const {
  for (const fs::path& file : checkpoints()) fs::remove(file);
  for (const fs::path& file : {config(), metrics(), best(), last(), report()}) fs::remove(file);
}

void RunFolder::save(const Checkpoint& checkpoint, bool best_so_far, Index keep) const {
  const fs::path file = this->checkpoint(checkpoint.step);
  write_checkpoint(file, checkpoint);
  link_durably(file, last());
  if (best_so_far) link_durably(file, best());
  const auto files = checkpoints();
  for (std::size_t i = static_cast<std::size_t>(keep); i < files.size(); ++i) fs::remove(files[i]);
}

std::vector<fs::path> runs_in(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing))
    if (entry.is_directory() && RunFolder(entry.path()).holds_checkpoints())
      runs.push_back(entry.path());
  std::ranges::sort(runs);
  return runs;
}

void require_run(const RunFolder& folder) {
  if (folder.holds_checkpoints()) return;
  const std::string name = folder.path().string();
  require<UserError>(fs::is_directory(folder.path()), "{} is not a run folder", name);
  std::string runs;
  for (const fs::path& run : runs_in(folder.path()))
    runs += (runs.empty() ? "" : ", ") + run.string();
  require<UserError>(runs.empty(), "{} holds several runs; name one of them: {}", name, runs);
  throw UserError(fmt::format("{} holds no checkpoint; is it the folder of a run?", name));
}

fs::path find_checkpoint(const fs::path& model) {
  if (!fs::is_directory(model)) return model;
  const RunFolder folder(model);
  for (const fs::path& file : {folder.best(), folder.last()})
    if (fs::exists(file)) return file;
  require_run(folder);
  return folder.checkpoints().front();
}

}  // namespace qkv
