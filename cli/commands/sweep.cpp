#include <algorithm>
#include <iterator>

#include "cli/commands/search_page.h"
#include "cli/commands/sweep_axes.h"
#include "cli/commands/training.h"
#include "train/config/option_list.h"
#include "train/storage/durable_file.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct SearchOptions {
  std::string config;
  std::vector<std::string> set;
  Index trials = 0;
  SweepOptions sweep;
  bool halve = false;
  bool restart = false;
};

std::string continuation(const SearchOptions& options) {
  std::string command = "qkv sweep " + shell_word(options.config);
  for (const std::string& change : options.set) command += " --set " + shell_word(change);
  if (options.trials > 0) command += fmt::format(" --trials {}", options.trials);
  if (options.sweep.seeds > 1) command += fmt::format(" --seeds {}", options.sweep.seeds);
  if (options.sweep.folds > 0) command += fmt::format(" --folds {}", options.sweep.folds);
  if (options.halve) command += " --halve";
  return command;
}

SweepFile config_file(const SearchOptions& options) {
  const auto& [only, seeds, folds] = options.sweep;
  require<UserError>(seeds == 1 || folds == 0,
                     "--folds and --seeds exclude each other; give one of them");
  require<UserError>(!options.halve || seeds > 1 || folds > 0,
                     "--halve leaves out the worse half after each seed or fold; give --seeds N or "
                     "--folds K, too");
  std::vector<std::string> changes = options.set;
  if (folds > 0) changes.push_back(fmt::format("task.fold=1/{}", folds));
  return read_sweep(options.config, changes, options.trials);
}

SearchPlan plan_of(const SweepFile& file, const SearchOptions& options) {
  SearchPlan plan{{}, std::max(options.sweep.seeds, options.sweep.folds), 1, options.halve};
  for (const Variant& variant : file.variants) plan.candidates.push_back(variant.name);
  return plan;
}

/// The numbers of the jobs of a round, on every rank those of rank 0, which alone ranks. `order`:
/// the longest first.
std::vector<std::size_t> jobs_of(const SearchRound& round, const std::vector<SweepRun>& jobs,
                                 const std::vector<std::size_t>& order, const Ranking& ranking,
                                 const Communicator& ranks) {
  std::vector<std::size_t> numbers;
  std::ranges::copy_if(order, std::back_inserter(numbers), [&](std::size_t i) {
    return jobs[i].number >= round.first_fold && jobs[i].number <= round.last_fold &&
           ranking.is_left(jobs[i].variant);
  });
  take_from_first_rank(numbers, ranks);
  return numbers;
}

/// The points of a sweep, the best first; nothing on other ranks than 0 and after a signal.
std::vector<CandidateResult> ranked(const std::vector<SweepRun>& jobs,
                                    const std::vector<std::size_t>& order, const SearchPlan& plan,
                                    const SweepFile& file, const StopSignal& stop,
                                    const Communicator& ranks) {
  Ranking ranking(plan.candidates, file.base.train.select);
  for (const SearchRound& round : rounds_of(plan)) {
    ranking.begin(round);
    const auto numbers = jobs_of(round, jobs, order, ranking, ranks);
    const auto done = all_carried_out(jobs, file.other_data, numbers, stop, ranks);
    if (received_by_any(stop, ranks)) return {};
    if (ranks.rank() > 0) continue;
    for (const std::size_t i : numbers) ranking.add(jobs[i].variant, *done[i]);
    ranking.end_round();
  }
  return ranks.rank() == 0 ? ranking.results() : std::vector<CandidateResult>();
}

/// An option's value: a string where its TOML is no JSON.
Json value_of(Config config, std::string_view key) {
  const auto options = options_of(config);
  const std::string text = std::ranges::find(options, key, &qkv::Option::key)->print();
  const Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

/// The keys of options that are not the same in all variants.
std::vector<std::string> swept_keys(const std::vector<Variant>& variants) {
  Config first = variants.front().config;
  std::vector<std::string> keys;
  for (const qkv::Option& option : options_of(first)) {
    const Json value = value_of(first, option.key);
    const auto differs = [&](const Variant& variant) {
      return value_of(variant.config, option.key) != value;
    };
    if (option.key != "name" && std::ranges::any_of(variants, differs))
      keys.emplace_back(option.key);
  }
  return keys;
}

/// Changes of a config as `qkv train` takes them.
std::string overrides(const SearchOptions& options, const Json& point) {
  std::string text;
  for (const std::string& change : options.set) text += " --set " + shell_word(change);
  for (const auto& [key, value] : point.items())
    text += " --set " +
            shell_word(key + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
  return text;
}

std::string metric_of(const SweepFile& file, const std::vector<CandidateResult>& results) {
  const std::string& select = file.base.train.select;
  return select.empty() ? evaluation_of(results.front().runs.front()).metrics.front().first
                        : select;
}

/// `to_json` of the results, with the options of each.
Json candidates_of(const std::vector<CandidateResult>& results, const SweepFile& file,
                   const std::string& metric) {
  Json candidates = to_json(results, metric);
  const auto keys = swept_keys(file.variants);
  for (Json& candidate : candidates) {
    const std::string name = candidate["name"];
    const Config& config = std::ranges::find(file.variants, name, &Variant::name)->config;
    candidate["options"] = Json::object();
    for (const std::string& key : keys) candidate["options"][key] = value_of(config, key);
  }
  return candidates;
}

/// Shows the results, and writes their page.
void show(Document& document, const std::vector<CandidateResult>& results, const SweepFile& file,
          const SearchOptions& options, const fs::path& page) {
  const std::string metric = metric_of(file, results),
                    runs = options.sweep.folds > 0 ? "folds" : "seeds";
  const Json candidates = candidates_of(results, file, metric);
  document.data = object({{"metric", metric}, {"candidates", candidates}});
  document.add_table(candidate_table(candidates, metric, runs));
  document.add_text("\nthe best: qkv train {}{}\n", shell_word(options.config),
                    overrides(options, candidates[0]["options"]));
  write_durably(
      page,
      search_page({page.parent_path().string(), metric, runs, axes_of(file, candidates)}, results));
}

Document sweep(const SearchOptions& options, const Communicator& ranks, const StopSignal& stop) {
  const SweepFile file = config_file(options);
  const fs::path parent = fs::path("runs") / (file.base.name + "-sweep");
  const auto jobs = runs_of(file, options.sweep, parent);
  const auto check = [&](const Run& run) {
    require<UserError>(options.sweep.folds > 0 || run.task->size(Split::valid) > 0,
                       "{} needs validation data, by which the best is chosen: task.valid, "
                       "task.valid_share, or --folds K",
                       options.config);
  };
  const auto order = order_of(jobs, options.restart, check, ranks);
  const fs::path page = parent / "sweep.html";
  std::error_code missing;
  if (ranks.rank() == 0) fs::remove(page, missing);  // soon out of date
  const auto results = ranked(jobs, order, plan_of(file, options), file, stop, ranks);
  Document document;
  if (const int signal = received_by_any(stop, ranks)) {
    note_stopped(document, signal, continuation(options));
  } else if (ranks.rank() == 0) {
    date_configs(jobs);
    show(document, results, file, options, page);
    note_written(document, parent);
    note_written(document, page);
  }
  return document;
}

}  // namespace

Command sweep_command() {
  const auto o = std::make_shared<SearchOptions>();
  return {
      .name = "sweep",
      .summary =
          "Train the points of a config's [[sweep]], or continue, and print the best first; "
          "under mpirun, ranks share the runs",
      .options = {config_argument(o->config),
                  {"--trials", &o->trials,
                   "Random points instead of the grid of all, as many as this (random search)",
                   from_to(1, 10000)},
                  {"--set KEY=VALUE", &o->set, "Change an option of all points"},
                  {"--seeds", &o->sweep.seeds, "Runs of each point, whose mean score counts [1]",
                   from_to(2, 1000)},
                  {"--folds", &o->sweep.folds,
                   "Cross-validation: runs of each point, each measured on another part of the "
                   "training examples",
                   from_to(2, 1000)},
                  {"--halve", &o->halve,
                   "Leave out the worse half after each seed or fold, until two points are left "
                   "(successive halving)"},
                  {"--restart", &o->restart,
                   "Train again from step 0 instead of resuming an earlier sweep"},
                  threads_option()},
      .run = [o](const Stream&) {
        return on_all_ranks([&](const Communicator& ranks, const StopSignal& stop) {
          return sweep(*o, ranks, stop);
        });
      }};
}

}  // namespace qkv::commands
