#include "train/storage/run_folder.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <functional>
#include <string_view>
#include <system_error>

#include "train/storage/durable_file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

/// The number that a text consists of.
std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

/// N of "step-N.h5"; nothing for other names.
std::optional<std::int64_t> step_of(const fs::path& file) {
  constexpr std::string_view begin = "step-", end = ".h5";
  const std::string name = file.filename().string();
  if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size())
    return std::nullopt;
  return number_in(
      std::string_view(name).substr(begin.size(), name.size() - begin.size() - end.size()));
}

/// Whether a run writes files of this name.
bool is_of_run(const fs::path& name) {
  const RunFolder run{fs::path()};
  const auto own = {run.config(), run.metrics(), run.best(),
                    run.last(),   run.report(),  run.events()};
  return step_of(name) ||
         std::ranges::any_of(own, [&](const fs::path& file) { return file.filename() == name; });
}

/// Whether a name is "<name>.tmp.<process>.<n>" of a file of a run and of a process that no longer
/// runs, or of this one, which then had the id of an earlier one.
bool is_leftover(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::size_t last = name.rfind('.'), marker = name.rfind(".tmp.");
  if (marker == name.npos || last < marker + 5 || !number_in(name.substr(last + 1))) return false;
  const auto process = number_in(name.substr(marker + 5, last - marker - 5));
  if (!process || *process == 0 || !is_of_run(name.substr(0, marker))) return false;
  const auto id = static_cast<pid_t>(*process);
  return id == ::getpid() || (::kill(id, 0) < 0 && errno == ESRCH);
}

bool is_there(const fs::path& file) {
  std::error_code error;
  const bool found = fs::exists(file, error);
  require<FileError>(!error, "{}: cannot be read: {}", file.string(), error.message());
  return found;
}

/// The entries of a folder; nothing when there is none.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  if (!is_there(folder)) return entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    entries.push_back(entry->path());
  require<FileError>(!error, "{}: the folder cannot be read: {}", folder.string(), error.message());
  return entries;
}

void remove_file(const fs::path& file) {
  if (::unlink(file.c_str()) == 0 || errno == ENOENT) return;
  throw FileError(
      fmt::format("{}: cannot remove: {}", file.string(), std::generic_category().message(errno)));
}

/// Makes `name` another name of `existing`, if there is such a file and it is not yet.
void link_to(const fs::path& existing, const fs::path& name) {
  std::error_code missing;
  if (is_there(existing) && !fs::equivalent(existing, name, missing)) link_durably(existing, name);
}

bool holds_step(const fs::path& file, std::int64_t step) {
  try {
    return is_there(file) && read_valid_checkpoint(file).step == step;
  } catch (const Error&) {
    return false;
  }
}

/// The best checkpoint as the newest valid step file names it, else that file itself; nothing when
/// it names none or there is no such file.
std::optional<fs::path> best_by_newest(const RunFolder& folder) {
  for (const fs::path& file : folder.checkpoints()) try {
      const auto best = best_step_of(read_valid_checkpoint(file));
      if (!best) return std::nullopt;
      const fs::path best_file = folder.checkpoint(*best);
      return is_there(best_file) ? best_file : file;
    } catch (const Error&) {
      continue;  // the one before it tells, too
    }
  return std::nullopt;
}

}  // namespace

fs::path RunFolder::checkpoint(std::int64_t step) const {
  return root_ / "checkpoints" / fmt::format("step-{:08}.h5", step);
}

std::vector<fs::path> RunFolder::checkpoints() const {
  std::vector<fs::path> found = entries_of(root_ / "checkpoints");
  std::erase_if(found, [](const fs::path& file) { return !step_of(file); });
  std::ranges::sort(found, std::greater(), step_of);
  return found;
}

std::int64_t RunFolder::newest_step() const {
  const auto files = checkpoints();
  return files.empty() ? 0 : *step_of(files.front());
}

std::vector<fs::path> RunFolder::names() const {
  std::vector<fs::path> found = {best(), last()};
  std::erase_if(found, [](const fs::path& file) { return !is_there(file); });
  return found;
}

bool RunFolder::holds_checkpoints() const {
  return !names().empty() || !checkpoints().empty();
}

bool RunFolder::holds_run() const {
  return holds_checkpoints() || (is_there(config()) && is_there(root_ / "checkpoints"));
}

void RunFolder::require_no_links() const {
  for (const fs::path& folder : {root_ / "checkpoints", tensorboard(), ensemble()}) {
    std::error_code unknown;
    require<UserError>(!fs::is_symlink(folder, unknown),
                       "{}: is a link, and a run writes in its own folder alone; replace the link "
                       "by a folder",
                       folder.string());
  }
}

void RunFolder::create() const {
  require_no_links();
  std::error_code error;
  fs::create_directories(root_ / "checkpoints", error);
  require<FileError>(!error, "cannot create the run folder {}: {}", root_.string(),
                     error.message());
}

void RunFolder::clear() const {
  require_no_links();
  for (const fs::path& file : checkpoints()) remove_file(file);
  for (const fs::path& file : {config(), metrics(), best(), last(), report()}) remove_file(file);
  if (is_there(events())) remove_file(events());
}

void RunFolder::clear_ensemble() const {
  require_no_links();
  for (const fs::path& run : runs_in(ensemble()))
    if (std::error_code unknown; fs::is_symlink(run, unknown))
      remove_file(run);
    else
      RunFolder(run).clear();
}

void RunFolder::remove_leftovers() const {
  std::vector<fs::path> folders = {root_, root_ / "checkpoints"};
  std::error_code unknown;
  if (fs::is_directory(tensorboard(), unknown)) folders.push_back(tensorboard());
  for (const fs::path& folder : folders)
    for (const fs::path& file : entries_of(folder))
      if (is_leftover(file)) remove_file(file);
}

void RunFolder::save(const Checkpoint& checkpoint, Index keep, std::int64_t passing) const {
  require_held();
  write_checkpoint(this->checkpoint(checkpoint.step), checkpoint);
  settle(checkpoint.step, best_step_of(checkpoint).value_or(0), keep, passing);
  for (const fs::path& file : checkpoints())
    if (*step_of(file) > checkpoint.step) remove_file(file);
}

void RunFolder::settle(std::int64_t step, std::int64_t best_step, Index keep,
                       std::int64_t passing) const {
  link_to(checkpoint(step), last());
  if (best_step > 0)
    link_to(checkpoint(best_step), best());
  else
    remove_file(best());
  for (const fs::path& file : checkpoints()) {
    const std::int64_t found = *step_of(file);
    const bool surplus = found == passing || (found <= step && keep-- <= 0);
    if (surplus && found != best_step) remove_file(file);
  }
}

bool RunFolder::restore_step(std::int64_t step) const {
  const fs::path file = checkpoint(step);
  if (holds_step(file, step)) return true;
  for (const fs::path& name : names())
    if (holds_step(name, step)) {
      link_durably(name, file);
      return true;
    }
  return false;
}

Checkpoint read_valid_checkpoint(const fs::path& file) {
  Checkpoint checkpoint = read_checkpoint(file);
  require<CheckpointError>(step_of(file).value_or(checkpoint.step) == checkpoint.step,
                           "{}: holds the checkpoint of step {}; it was renamed or is another "
                           "run's",
                           file.string(), checkpoint.step);
  const std::string path = non_finite_tensor(checkpoint);
  require<CheckpointError>(path.empty(), "{}: {} holds a value that is not finite", file.string(),
                           path);
  return checkpoint;
}

std::vector<fs::path> runs_in(const fs::path& folder) {
  std::vector<fs::path> runs = entries_of(folder);
  std::erase_if(runs, [](const fs::path& run) {
    std::error_code unknown;
    return !fs::is_directory(run, unknown) || !RunFolder(run).holds_checkpoints();
  });
  std::ranges::sort(runs);
  return runs;
}

std::vector<fs::path> ensemble_of(const fs::path& model) {
  std::vector<fs::path> models = runs_in(RunFolder(model).ensemble());
  models.insert(models.begin(), model);
  return models;
}

void require_run(const RunFolder& folder) {
  if (folder.holds_checkpoints()) return;
  const std::string name = folder.path().string();
  std::error_code unknown;
  require<UserError>(fs::is_directory(folder.path(), unknown), "{} is not a run folder", name);
  std::string runs;
  for (const fs::path& run : runs_in(folder.path()))
    runs += (runs.empty() ? "" : ", ") + run.string();
  require<UserError>(runs.empty(), "{} holds several runs; name one of them: {}", name, runs);
  throw UserError(fmt::format("{} holds no checkpoint; is it the folder of a run?", name));
}

fs::path find_checkpoint(const fs::path& model) {
  std::error_code unknown;
  if (!fs::is_directory(model, unknown)) return model;
  const RunFolder folder(model);
  require_run(folder);
  const auto files = folder.checkpoints();
  if (is_there(folder.best())) return folder.best();
  if (const auto best = best_by_newest(folder)) return *best;
  return is_there(folder.last()) ? folder.last() : files.front();
}

}  // namespace qkv
