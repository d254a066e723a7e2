#include <fast_float/fast_float.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "cli/commands/fit_card.h"
#include "cli/commands/fit_search.h"
#include "cli/commands/search_page.h"
#include "cli/commands/training.h"
#include "train/config/option.h"
#include "train/fit/candidates.h"
#include "train/storage/durable_file.h"
#include "train/tasks/ensemble.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct FitOptions {
  std::string file, test, word, metric, pretrained, run;
  std::string time = "5m";
  std::vector<std::string> set;
  bool restart = false;
};

/// "90s", "5m", "1h"
double seconds_in(const std::string& time) {
  double number = 0;
  const auto [end, error] = fast_float::from_chars(time.data(), time.data() + time.size(), number);
  const std::map<std::string, double> units = {{"s", 1}, {"m", 60}, {"h", 3600}};
  const auto unit = units.find(std::string(end, time.data() + time.size()));
  require<UserError>(error == std::errc() && unit != units.end() && number > 0 && number <= 1e6,
                     "--time {}: must be a duration, such as 90s, 5m or 1h", time);
  return number * unit->second;
}

fs::path folder_of(const FitOptions& options) {
  if (options.run.empty()) return fs::path("runs") / fs::path(options.file).stem();
  return fs::path(options.run + "/").lexically_normal().parent_path();
}

/// Where the candidates are trained.
fs::path search_folder(const FitOptions& options) {
  return folder_of(options).string() + "-fit";
}

std::string continuation(const FitOptions& options) {
  std::string command = "qkv fit " + shell_word(options.file);
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) command += fmt::format(" {} {}", name, shell_word(value));
  };
  add("--test", options.test);
  add("--word", options.word);
  add("--metric", options.metric);
  add("--pretrained", options.pretrained);
  add("--run", options.run);
  add("--time", options.time);
  for (const std::string& change : options.set) add("--set", change);
  return command;
}

ConfigFile candidates_of(const FitOptions& options) {
  std::vector<std::string> changes = {"name=" + toml_string(folder_of(options).filename().string()),
                                      "task.data=" + toml_string(options.file)};
  if (!options.test.empty()) changes.push_back("task.test=" + toml_string(options.test));
  if (!options.word.empty()) changes.push_back("task.word=" + toml_string(options.word));
  changes.insert(changes.end(), options.set.begin(), options.set.end());
  return candidates_for(task_kind_of(options.file, options.word), changes, options.pretrained);
}

fs::path search_file(const FitOptions& options) {
  return search_folder(options) / "fit.json";
}

bool is_begun(const FitOptions& options) {
  std::error_code missing;
  return fs::exists(search_file(options), missing);
}

/// Throws UserError when the search was begun with other options.
StoredSearch begun_search(const ConfigFile& file, const FitOptions& options) {
  constexpr std::uint64_t most_bytes = 1 << 20;
  const std::string path = search_file(options).string();
  StoredSearch search;
  try {
    search = parse_search(read_file(path, most_bytes), file.variants);
  } catch (const FileError& error) {
    throw UserError(fmt::format("{}: {}; --restart searches again", path, error.what()));
  }
  require<UserError>(search.command == continuation(options),
                     "{} was begun by `{}`; give the same options, another --run, or --restart",
                     path, search.command);
  return search;
}

/// The search of an earlier call, or a new one, which is written before anything is trained: one
/// that was killed ends as it would have.
StoredSearch search_of(const ConfigFile& file, const FitData& data, const FitOptions& options,
                       Callback& callback) {
  if (is_begun(options)) return begun_search(file, options);
  require<UserError>(!RunFolder(folder_of(options)).holds_run(),
                     "{} holds a run of another command; name another folder with --run",
                     folder_of(options).string());
  StoredSearch search{continuation(options), options.metric, {}};
  search.plan =
      planned_search(file, data, search.metric, seconds_in(options.time) - data.reading, callback);
  fs::create_directories(search_folder(options));
  write_durably(search_file(options), to_json(search));
  return search;
}

/// The winner on all examples, its first model in the folder that the user named, before the
/// others of the ensemble.
std::vector<SweepRun> last_trainings(const ConfigFile& file, const StoredSearch& search,
                                     const CandidateResult& winner, const fs::path& folder) {
  auto jobs =
      runs_of(file, SweepOptions{winner.members, search.plan.seeds}, RunFolder(folder).ensemble());
  for (SweepRun& job : jobs) job.config = shortened(job.config, search.plan.fraction);
  const auto first = std::ranges::find(jobs, winner.members.front(), &SweepRun::variant);
  first->folder = RunFolder(folder);
  first->config.name = file.base.name;
  std::rotate(jobs.begin(), first, first + 1);
  return jobs;
}

/// The model, trained and measured; nothing after a signal.
std::optional<VariantRun> trained(const std::vector<SweepRun>& jobs, const StopSignal& stop) {
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto runs = all_carried_out(jobs, false, order, stop, single_process);
  if (stop.received() != 0) return std::nullopt;
  VariantRun model = *runs.front();
  if (runs.size() == 1 || !model.outcome.test) return model;
  std::vector<Evaluation> evaluations;
  evaluations.reserve(jobs.size());
  for (const SweepRun& job : jobs)
    evaluations.push_back(evaluation_with_probabilities(job.folder.path()));
  model.outcome.test = averaged(evaluations);
  return model;
}

void clear_all(const ConfigFile& file, const FitOptions& options) {
  auto runs = runs_of(file, SweepOptions{{}, most_planned_repeats, most_planned_folds},
                      search_folder(options));
  runs.push_back({"", file.base, RunFolder(folder_of(options))});
  clear(runs);
  std::error_code missing;
  fs::remove(search_file(options), missing);
}

Document fit(const FitOptions& options) {
  const StopSignal stop;
  const ConfigFile file = candidates_of(options);
  const fs::path folder = folder_of(options);
  if (options.restart && is_begun(options)) clear_all(file, options);
  Progress progress(stop);
  const FitData data = read_data(options.file, file.variants.front().config, progress);
  const StoredSearch search = search_of(file, data, options, progress);
  for (const std::string& fact : data.facts) progress.on_message(fact);
  progress.on_message(search_described(search.plan));
  Search candidates(file, data, search, search_folder(options), stop);
  FitResult result{.run = folder.string(),
                   .metric = search.metric,
                   .plan = search.plan,
                   .candidates = candidates.results(),
                   .model = {}};
  if (!result.candidates.empty())
    result.model = trained(last_trainings(file, search, result.candidates.front(), folder), stop);
  Document document;
  if (const int signal = stop.received()) {
    note_stopped(document, signal, continuation(options));
    return document;
  }
  write_durably(folder / "card.md", card_of(result, data));
  write_durably(folder / "fit.html",
                search_page({result.run, result.metric, "folds", {}}, result.candidates));
  document.data = to_json(result);
  document.add_table(candidate_table(result));
  document.add_text("\n{}\n", expectation(result));
  if (const auto& test = result.model->outcome.test) add_evaluation(document, "test split", *test);
  note_written(document, folder);
  note_written(document, folder / "card.md");
  note_written(document, folder / "fit.html");
  return document;
}

}  // namespace

Command fit_command() {
  const auto o = std::make_shared<FitOptions>();
  return {
      .name = "fit",
      .summary = "Find the model for a file of labelled texts, and train it",
      .options = {required(
                      {"FILE", &o->file,
                       "Lines of label<TAB>text or label<TAB>index<TAB>sentence, CSV, or CoNLL "
                       "columns (*.conll)"}),
                  {"--test FILE", &o->test, "Test data, which the search does not use"},
                  {"--word WORD", &o->word, "The word whose sense the labels are"},
                  {"--time DURATION", &o->time,
                   "Time for the search and the last training: 90s, 5m, 1h [5m]"},
                  {"--metric NAME", &o->metric,
                   "Metric to choose by: accuracy, macro_f1, log_loss [the task's first]"},
                  {"--pretrained RUN", &o->pretrained,
                   "A trained encoder that one more candidate starts from"},
                  {"--run FOLDER", &o->run, "Folder of the model [runs/NAME OF THE FILE]"},
                  {"--set KEY=VALUE", &o->set,
                   "Change an option of all candidates: --set task.columns=[\"label\",\"text\"]"},
                  {"--restart", &o->restart, "Search again instead of resuming an earlier search"},
                  threads_option()},
      .run = [o](const Stream&) { return fit(*o); }};
}

}  // namespace qkv::commands
