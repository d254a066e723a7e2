#include "inspect/report/run_data.h"

#include <algorithm>
#include <map>

#include "train/config/option_list.h"
#include "train/metrics/metrics.h"
#include "train/storage/run_folder.h"

namespace qkv::report {
namespace {

namespace fs = std::filesystem;

fs::file_time_type began(const fs::path& run) {
  std::error_code missing;
  return fs::last_write_time(RunFolder(run).config(), missing);
}

std::vector<Json> metrics_of(const fs::path& file) {
  const Metrics metrics = read_metrics(file);
  if (!metrics.malformed.empty())
    throw UserError(fmt::format("{}:{}: is not a line of metrics with a step, a split and numbers",
                                file.string(), metrics.malformed.front()));
  std::vector<Json> events;
  for (const MetricsEvent& event : metrics.events) events.push_back(Json::parse(event.json));
  return events;
}

/// Sizes of the data as the config names it; only the vocabulary's where the data no longer exists.
Json sizes_of(const LoadedModel& model) {
  Json sizes = {{"vocabulary", model.task->vocabulary().size()}};
  const auto lists = model.task->vocabularies();
  if (const auto labels = lists.find("labels"); labels != lists.end())
    sizes["labels"] = labels->second;
  try {
    ReadCallback silent;
    const auto task = task_with_data(model, silent);
    for (const Split split : {Split::train, Split::valid, Split::test})
      sizes[std::string(to_string(split))] = task->size(split);
  } catch (const UserError&) {
    sizes["missing"] = true;
  }
  return sizes;
}

bool differ_in_seed_or_fold(const Config& a, Config b) {
  if (a.seed == b.seed && a.task.fold == b.task.fold) return false;
  b.seed = a.seed;
  b.task.fold = a.task.fold;
  return differing_options(a, b).empty();
}

/// The config of a run for a page that others get: of a file that shares no folder with the run,
/// the name alone.
std::string shown_config(const Config& config, const fs::path& run) {
  Config shown = portable(config, run);
  for (const Option& option : options_of(shown))
    if (option.path && fs::path(*option.path).is_absolute())
      *option.path = fs::path(*option.path).filename();
  return to_toml(shown);
}

/// "bank - learned, 4 heads" -> "learned, 4 heads"
std::string variant_name(const std::string& name) {
  const auto at = name.find(" - ");
  return at == name.npos ? name : name.substr(at + 3);
}

}  // namespace

std::vector<Variant> variants_of(const fs::path& folder) {
  if (RunFolder(folder).holds_checkpoints()) return {{folder}};
  std::vector<fs::path> runs = runs_in(folder);
  require<UserError>(!runs.empty(),
                     "{} holds no checkpoint; give the folder of a run or of a comparison",
                     folder.string());
  std::ranges::sort(runs, [](const fs::path& a, const fs::path& b) {
    return std::pair(began(a), a) < std::pair(began(b), b);
  });
  std::vector<Variant> variants;
  std::vector<Config> configs;
  for (const fs::path& run : runs) {
    Config config = load_model(run).config;
    config.name.clear();
    const auto same = std::ranges::find_if(
        configs, [&](const Config& other) { return differ_in_seed_or_fold(other, config); });
    if (same != configs.end()) {
      variants[static_cast<std::size_t>(same - configs.begin())].push_back(run);
      continue;
    }
    variants.push_back({run});
    configs.push_back(std::move(config));
  }
  return variants;
}

std::vector<std::size_t> spread(std::size_t size, std::size_t count) {
  if (count >= size) count = size;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < count; ++i)
    chosen.push_back(count == 1 ? size - 1 : i * (size - 1) / (count - 1));
  return chosen;
}

std::vector<RunCheckpoint> checkpoints_of(const fs::path& run, std::size_t count) {
  const RunFolder folder(run);
  std::map<std::int64_t, RunCheckpoint> by_step;
  const auto add = [&](const fs::path& file, const std::string& note) {
    LoadedModel model = load_model(file);
    RunCheckpoint& checkpoint = by_step[model.step];
    checkpoint = {note, std::move(model)};
  };
  const std::vector<fs::path> files = folder.checkpoints();
  for (const std::size_t i : spread(files.size(), count)) add(files[i], "");
  if (fs::exists(folder.last())) add(folder.last(), "");
  if (fs::exists(folder.best())) add(folder.best(), "best");
  require<UserError>(!by_step.empty(), "{} holds no checkpoint", run.string());
  by_step.try_emplace(0, RunCheckpoint{"untrained", untrained(by_step.begin()->second.model)});
  std::vector<RunCheckpoint> checkpoints;
  checkpoints.reserve(by_step.size());
  for (auto& [step, checkpoint] : by_step) checkpoints.push_back(std::move(checkpoint));
  return checkpoints;
}

Json summary_of(const fs::path& run, const LoadedModel& model) {
  return {{"name", variant_name(model.config.name)},
          {"config", shown_config(model.config, run)},
          {"parameters", parameter_count(*model.network)},
          {"data", sizes_of(model)}};
}

Json outcome_of(const fs::path& run, const LoadedModel& model) {
  Json outcome = {{"metrics", Json::array()}, {"best_step", nullptr}};
  if (fs::exists(RunFolder(run).best())) outcome["best_step"] = model.step;
  for (Json& event : metrics_of(RunFolder(run).metrics())) {
    if (event.contains("seconds")) outcome["seconds"] = event["seconds"];
    if (event["split"] == "test") outcome["test"] = event;
    outcome["metrics"].push_back(std::move(event));
  }
  return outcome;
}

}  // namespace qkv::report
