#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <tuple>

#include "cli/commands/shared.h"
#include "layers/model.h"
#include "train/config/task_kinds.h"
#include "train/metrics/metrics.h"
#include "train/storage/durable_file.h"
#include "train/storage/run_lock.h"
#include "train/tasks/splits.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct RunsOptions {
  std::string folder = "runs", only, sort = "run";
};

/// The run folders at and below a folder. Links are not followed, and a run is not searched.
std::vector<fs::path> runs_below(const fs::path& folder) {
  std::error_code error;
  require<UserError>(fs::is_directory(folder, error), "{}: {}", folder.string(),
                     error ? error.message() : "is no folder; name the one that holds runs");
  if (RunFolder(folder).holds_run()) return {folder};
  std::vector<fs::path> runs;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto at = fs::recursive_directory_iterator(folder, options, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code unknown;
    if (at->is_symlink(unknown) || !at->is_directory(unknown)) continue;
    if (!RunFolder(at->path()).holds_run()) continue;
    runs.push_back(at->path());
    at.disable_recursion_pending();
  }
  require<FileError>(!error, "{}: {}", folder.string(), error.message());
  std::ranges::sort(runs);
  return runs;
}

/// The evaluation of a line of metrics: the loss, and the task's metrics in its order.
Evaluation evaluation_in(const MetricsEvent& event) {
  Evaluation evaluation;
  evaluation.loss = event.loss.value_or(0);
  const Json line = Json::parse(event.json);
  for (const auto& [name, value] : line.items())
    if (value.is_number() && name != "step" && name != "loss" && name != "seconds" &&
        name != "tokens_per_second")
      evaluation.metrics.emplace_back(name, value.get<double>());
  return evaluation;
}

/// A run as a row, and its score such that the higher is the better.
struct Listed {
  Json row;
  std::optional<double> rank;
};

/// Adds "metric" and "score", the best of the validation data by train.select, else by the task's
/// headline metric, or by the loss where it has none.
void add_score(Listed& run, std::span<const MetricsEvent> events, const std::string& select) {
  for (const MetricsEvent& event : events) {
    if (event.split != to_string(Split::valid) || !event.loss) continue;
    const Evaluation found = evaluation_in(event);
    const std::string metric = !select.empty()         ? select
                               : found.metrics.empty() ? "loss"
                                                       : found.metrics.front().first;
    if (metric != "loss" && !found.find(metric)) continue;
    const double rank = found.score_by(metric);
    if (run.rank && rank <= *run.rank) continue;
    run.rank = rank;
    run.row["metric"] = metric;
    run.row["score"] = metric == "loss" ? found.loss : found.metric(metric);
  }
}

/// The state of a run: it is being trained, it has all steps of its config or was tested
/// after them, or it lacks some. How many steps epochs are, its folder does not say.
std::string state_of(const RunFolder& folder, std::span<const MetricsEvent> events,
                     const TrainOptions& train) {
  if (is_locked(folder.path())) return "training";
  const bool is_tested = !events.empty() && events.back().split == to_string(Split::test);
  if (is_tested || (train.steps > 0 && folder.newest_step() >= train.steps)) return "finished";
  return train.steps > 0 && train.patience == 0 ? "stopped" : "";
}

/// Seconds since a run last wrote something.
Index age_of(const RunFolder& folder) {
  auto newest = fs::file_time_type::min();
  for (const fs::path& file : {folder.config(), folder.metrics(), folder.last()}) {
    std::error_code missing;
    const auto written = fs::last_write_time(file, missing);
    if (!missing) newest = std::max(newest, written);
  }
  const auto age = fs::file_time_type::clock::now() - newest;
  return std::max<Index>(std::chrono::duration_cast<std::chrono::seconds>(age).count(), 0);
}

std::string age_text(Index seconds) {
  constexpr Index minute = 60, hour = 60 * minute, day = 24 * hour;
  if (seconds < minute) return fmt::format("{} s", seconds);
  if (seconds < hour) return fmt::format("{} min", seconds / minute);
  if (seconds < 2 * day) return fmt::format("{} h", seconds / hour);
  return fmt::format("{} days", seconds / day);
}

Listed described(const fs::path& path) {
  constexpr std::uint64_t most_bytes = 1 << 20;
  const RunFolder folder(path);
  const std::string file = folder.config().string();
  const std::string text = read_file(file, most_bytes);
  const Config config = parse_config(text, file);
  const auto events = read_valid_metrics(folder.metrics());
  Listed run{object({{"run", path.string()},
                     {"task", nullptr},
                     {"data", nullptr},
                     {"model", nullptr},
                     {"metric", nullptr},
                     {"score", nullptr},
                     {"step", folder.newest_step()},
                     {"age", age_of(folder)},
                     {"state", nullptr}}),
             std::nullopt};
  if (has_task(text, file)) {  // not of a module of a program's own
    run.row["task"] = std::string(row_of(task_kinds(), config.task.kind).name);
    run.row["data"] = source_of(config.task);
    run.row["model"] = std::string(row_of(model_kinds(), config.model.kind).name);
  }
  add_score(run, events, config.train.select);
  if (const auto state = state_of(folder, events, config.train); !state.empty())
    run.row["state"] = state;
  return run;
}

/// Whether one of a row's texts contains `text`.
bool mentions(const Json& row, const std::string& text) {
  return std::ranges::any_of(row, [&](const Json& value) {
    return value.is_string() && value.get_ref<const std::string&>().find(text) != std::string::npos;
  });
}

/// Sorts by a column: texts in alphabetical order, the best score, the most steps and the youngest
/// first. What is unknown comes last.
void sort_by(const std::string& column, std::vector<Listed>& runs) {
  constexpr std::string_view columns[] = {"run",   "task", "data", "model",
                                          "score", "step", "age",  "state"};
  require<UserError>(std::ranges::find(columns, column) != std::end(columns),
                     "--sort: there is no column \"{}\"; it must be one of {}", column,
                     fmt::format("{}", fmt::join(columns, ", ")));
  std::ranges::stable_sort(runs, {}, [&](const Listed& run) {
    const Json& value = run.row.at(column);
    const double number = column == "score"   ? -run.rank.value_or(0)
                          : column == "step"  ? -value.get<double>()
                          : value.is_number() ? value.get<double>()
                                              : 0;
    return std::tuple(value.is_null(), number, value.is_string() ? value.get<std::string>() : "");
  });
}

Cells to_table(Json rows) {
  for (Json& row : rows) {
    if (!row["score"].is_null())
      row["score"] = fmt::format("{} {:.4f}", row["metric"].get_ref<const std::string&>(),
                                 row["score"].get<double>());
    row["age"] = age_text(row["age"].get<Index>());
  }
  return table_of(rows, {{"run", "/run"},
                         {"valid score", "/score"},
                         {"step", "/step"},
                         {"state", "/state"},
                         {"age", "/age"},
                         {"task", "/task"},
                         {"model", "/model"},
                         {"data", "/data"}});
}

Document runs(const RunsOptions& options) {
  Document document;
  std::vector<Listed> listed;
  for (const fs::path& path : runs_below(options.folder)) {
    try {
      Listed run = described(path);
      if (mentions(run.row, options.only)) listed.push_back(std::move(run));
    } catch (const UserError& error) {
      document.add_note("{}", error.what());
      document.exit_code = 1;
    }
  }
  sort_by(options.sort, listed);
  Json& rows = document.data["runs"] = Json::array();
  for (Listed& run : listed) rows.push_back(std::move(run.row));
  if (!listed.empty())
    document.add_table(to_table(rows));
  else
    document.add_note("{}: no run{}", options.folder,
                      options.only.empty() ? "" : " with \"" + options.only + "\"");
  return document;
}

}  // namespace

Command runs_command() {
  const auto o = std::make_shared<RunsOptions>();
  return {
      .name = "runs",
      .summary = "List the runs below a folder",
      .options = {{"FOLDER", &o->folder, "Where to look, by default runs"},
                  {"--only TEXT", &o->only, "Only runs with this text in a column"},
                  {"--sort run|task|data|model|score|step|age|state", &o->sort,
                   "The column to sort by: the best score, the most steps, the youngest first"}},
      .run = [o](const Stream&) { return runs(*o); }};
}

}  // namespace qkv::commands
