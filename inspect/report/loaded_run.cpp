#include "inspect/report/loaded_run.h"

#include <algorithm>
#include <map>

#include "train/metrics/metrics.h"
#include "train/storage/run_folder.h"

namespace qkv::report {
namespace {

namespace fs = std::filesystem;

/// The folder itself if it is a run's, else the runs in it, in the order of training.
std::vector<fs::path> folders_of_runs(const fs::path& folder) {
  if (RunFolder(folder).holds_checkpoints()) return ensemble_of(folder);
  std::vector<fs::path> runs = runs_in(folder);
  require<UserError>(!runs.empty(),
                     "{} holds no checkpoint; give the folder of a run or of a comparison",
                     folder.string());
  std::ranges::sort(runs, {}, [](const fs::path& run) {
    std::error_code missing;
    return std::pair(fs::last_write_time(RunFolder(run).config(), missing), run);
  });
  return runs;
}

/// A run with its best checkpoint, without validation the newest.
LoadedRun load_run(const fs::path& path) {
  const RunFolder folder(path);
  LoadedRun run{path, {}, {}};
  for (const MetricsEvent& event : read_valid_metrics(folder.metrics()))
    run.metrics.push_back(Json::parse(event.json));
  run.checkpoints.push_back({fs::exists(folder.best()) ? "best" : "", load_model(path)});
  return run;
}

}  // namespace

std::vector<RunGroup> load_groups(const fs::path& folder) {
  std::vector<RunGroup> groups;
  for (const fs::path& path : folders_of_runs(folder)) {
    LoadedRun run = load_run(path);
    const auto same = std::ranges::find_if(groups, [&](const RunGroup& group) {
      const Config& first = group.front().config();
      Config config = run.config();
      if (config.seed == first.seed && config.task.fold == first.task.fold) return false;
      config.name = first.name;
      config.seed = first.seed;
      config.task.fold = first.task.fold;
      return differing_options(first, config).empty();
    });
    RunGroup& group = same == groups.end() ? groups.emplace_back() : *same;
    group.push_back(std::move(run));
  }
  return groups;
}

void load_checkpoints(LoadedRun& run, std::size_t count) {
  const RunFolder folder(run.folder);
  std::vector<fs::path> read = {find_checkpoint(run.folder)};  // some are one file of two names
  const std::int64_t chosen = run.model().step;
  std::map<std::int64_t, RunCheckpoint> by_step;
  by_step.emplace(chosen, std::move(run.checkpoints[run.chosen]));
  const auto add = [&](const fs::path& file) {
    std::error_code missing;
    const auto is_file = [&](const fs::path& other) {
      return fs::equivalent(file, other, missing);
    };
    if (!fs::exists(file, missing) || std::ranges::any_of(read, is_file)) return;
    SavedModel model = load_model(read.emplace_back(file));
    const std::int64_t step = model.step;
    by_step.try_emplace(step, RunCheckpoint{"", std::move(model)});
  };
  const std::vector<fs::path> steps = folder.checkpoints();
  for (const std::size_t i : spread(steps.size(), count)) add(steps[i]);
  add(folder.last());
  if (!by_step.contains(0))
    by_step.emplace(0, RunCheckpoint{"untrained", {untrained(by_step.begin()->second.model)}});
  run.chosen = static_cast<std::size_t>(std::distance(by_step.begin(), by_step.find(chosen)));
  run.checkpoints.clear();
  for (auto& [step, checkpoint] : by_step) run.checkpoints.push_back(std::move(checkpoint));
}

std::vector<std::size_t> spread(std::size_t size, std::size_t count) {
  if (count >= size) count = size;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < count; ++i)
    chosen.push_back(count == 1 ? size - 1 : i * (size - 1) / (count - 1));
  return chosen;
}

}  // namespace qkv::report
