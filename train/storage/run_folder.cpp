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

void RunFolder::create() const {
  require<UserError>(checkpoints().empty() && !fs::exists(last()),
                     "{} already holds a run; go on with `qkv resume {}`, remove the folder, or "
                     "choose another with --run",
                     root_.string(), root_.string());
  std::error_code error;
  fs::create_directories(root_ / "checkpoints", error);
  require<UserError>(!error, "cannot make the run folder {}: {}", root_.string(), error.message());
}

void RunFolder::clear() const {
  for (const fs::path& file : checkpoints()) fs::remove(file);
  for (const fs::path& file : {config(), metrics(), best(), last()}) fs::remove(file);
}

void RunFolder::save(const Checkpoint& checkpoint, bool best_so_far, Index keep) const {
  const fs::path file = this->checkpoint(checkpoint.step);
  write_checkpoint(file, checkpoint);
  link_durably(file, last());
  if (best_so_far) link_durably(file, best());
  const auto files = checkpoints();
  for (std::size_t i = static_cast<std::size_t>(keep); i < files.size(); ++i) fs::remove(files[i]);
}

fs::path find_checkpoint(const fs::path& model) {
  if (!fs::is_directory(model)) return model;
  const RunFolder folder(model);
  for (const fs::path& file : {folder.best(), folder.last()})
    if (fs::exists(file)) return file;
  const auto files = folder.checkpoints();
  require<UserError>(!files.empty(), "{} holds no checkpoint; is it the folder of a run?",
                     model.string());
  return files.front();
}

}  // namespace qkv
