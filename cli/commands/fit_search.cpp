#include "cli/commands/fit_search.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>

#include "cli/standard_streams.h"
#include "core/parallel.h"
#include "train/config/task_kinds.h"
#include "train/fit/ensemble_selection.h"
#include "train/loop/updater.h"
#include "train/tasks/splits.h"

namespace qkv::commands {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The number of examples that folds can hold out: all but the only one of a label.
Index examples_for_folds(const Task& task) {
  std::map<std::string, Index> counts;
  for (Index i = 0; i < task.size(Split::train); ++i) ++counts[task.example(Split::train, i).label];
  Index sum = 0;
  for (const auto& [label, count] : counts) sum += count > 1 ? count : 0;
  return sum;
}

/// Measured for `seconds` after as many: the first steps take longer, until buffers are pooled.
double seconds_a_step(Run& run, double seconds) {
  constexpr std::int64_t warm_up = 2, fewest = 3;
  Updater updater(run);
  const auto begin = Clock::now();
  while (run.step < run.last_step - 1 && (since(begin) < seconds || run.step < warm_up))
    updater.step();
  const auto first = run.step;
  const auto start = Clock::now();
  do updater.step();
  while (run.step < run.last_step && (since(start) < seconds || run.step < first + fewest));
  return since(start) / static_cast<double>(run.step - first);
}

std::vector<std::size_t> indices_below(std::size_t count) {
  std::vector<std::size_t> indices(count);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  return indices;
}

/// Throws UserError when the updates of the vectors of n-grams take longer than `seconds`, if all
/// n-grams differ: an optimizer updates every vector at each step.
void require_few_ngrams(const Config& config, const FitData& data, double seconds) {
  constexpr double seconds_a_value = 1e-9;
  if (config.task.ngrams == 1) return;
  const Index examples = data.task->size(Split::train);
  double tokens = 0;
  for (Index i = 0; i < examples; ++i) tokens += static_cast<double>(data.task->tokens(i));
  const double ngrams = tokens * static_cast<double>(config.task.ngrams - 1),
               steps = config.train.epochs * static_cast<double>(examples) /
                       static_cast<double>(config.train.batch);
  require<UserError>(
      ngrams * static_cast<double>(config.model.width) * steps * seconds_a_value <= seconds,
      "up to {:.0f} n-grams, whose vectors all change in each of {:.0f} steps, take longer than "
      "--time",
      ngrams, steps);
}

/// Seconds that a candidate's training takes where others are trained on the other threads, as in a
/// search: cores share caches and memory. `data` were read for `known`. The steps are measured for
/// `seconds`.
CandidateTime time_of(const Variant& candidate, const Config& known, const FitData& data,
                      double seconds) {
  const bool is_equal = have_equal_tasks(known, candidate.config);
  std::vector<CandidateTime> times(static_cast<std::size_t>(threads()));
  for_each_side_by_side(
      indices_below(times.size()), [] { return false; },
      [&](std::size_t i, bool) {
        const auto start = Clock::now();
        Run run = start_run(candidate.config, silent_reading, is_equal ? data.task : nullptr);
        times[i] = {candidate.name, data.reading + since(start), 0};
        times[i].training = seconds_a_step(run, seconds) * static_cast<double>(run.last_step);
      });
  return *std::ranges::max_element(times, {}, &CandidateTime::training);
}

/// The candidates of a plan in the order of the file: of equally good ones the first is to win,
/// whichever was measured to be faster.
std::vector<std::string> in_order(const ConfigFile& file, const SearchPlan& plan) {
  std::vector<std::string> names;
  for (const Variant& candidate : file.variants)
    if (std::ranges::find(plan.candidates, candidate.name) != plan.candidates.end())
      names.push_back(candidate.name);
  return names;
}

void check(const Task& task, const std::string& metric, const std::string& source) {
  const auto metrics = task.metric_names();
  require<UserError>(metric.empty() || std::ranges::find(metrics, metric) != metrics.end(),
                     "--metric {}: this task has {}", metric,
                     fmt::format("{}", fmt::join(metrics, ", ")));
  require<UserError>(examples_for_folds(task) >= 2,
                     "{}: one label needs two examples, to learn from and to be measured on",
                     source);
}

/// The result of an ensemble of candidates; its runs have the folders of the first member's.
CandidateResult averaged_result(const std::vector<CandidateResult>& candidates,
                                const SelectedEnsemble& selected) {
  CandidateResult together;
  for (const std::size_t index : selected.members) {
    const CandidateResult& member = candidates[index];
    together.name += (together.members.empty() ? "" : " + ") + member.name;
    together.members.push_back(member.name);
    if (index == selected.members.front()) {
      together.runs = member.runs;
      continue;
    }
    for (std::size_t i = 0; i < member.runs.size(); ++i) {
      together.runs[i].parameters += member.runs[i].parameters;
      together.runs[i].outcome.seconds += member.runs[i].outcome.seconds;
    }
  }
  for (std::size_t i = 0; i < together.runs.size(); ++i)
    together.runs[i].outcome.test = selected.folds[i];
  return together;
}

}  // namespace

bool can_be_averaged(const FitData& data) {
  constexpr std::size_t most_probabilities = 1 << 22;  // of a candidate: 32 MiB
  return row_of(task_kinds(), data.kind).traits.has_one_label &&
         static_cast<std::size_t>(data.task->size(Split::train)) * data.task->labels().size() <=
             most_probabilities;
}

SearchPlan planned_search(const ConfigFile& file, const FitData& data, std::string& metric,
                          double seconds, Callback& callback) {
  const auto start = Clock::now();
  const Config& first = file.variants.front().config;
  check(*data.task, metric, data.file);
  const double measured = std::clamp(seconds / 400, 0.1, 1.0);  // of each candidate's steps
  std::vector<CandidateTime> times;
  for (const Variant& candidate : file.variants) try {
      require_few_ngrams(candidate.config, data, seconds);
      times.push_back(time_of(candidate, first, data, measured));
    } catch (const UserError& error) {
      callback.on_message(fmt::format("{} left out: {}", candidate.name, error.what()));
    }
  require<UserError>(!times.empty(), "{}: no candidate can be trained on it", data.file);
  if (metric.empty()) metric = data.task->metric_names().front();
  constexpr double for_training = 0.85;  // evaluations and checkpoints take time, too
  return search_plan(times, threads(), for_training * (seconds - since(start)),
                     examples_for_folds(*data.task),
                     can_be_averaged(data) ? most_planned_seeds : 1);
}

Config shortened(Config config, double fraction) {
  TrainOptions& train = config.train;
  if (train.epochs > 0)
    train.epochs *= fraction;
  else
    train.steps =
        std::max<std::int64_t>(std::llround(fraction * static_cast<double>(train.steps)), 1);
  return config;
}

Evaluation evaluation_with_probabilities(const std::filesystem::path& run) {
  const std::string folder = run.string();
  const LoadedModel model = load_model(folder);
  return evaluation_data(model, folder, "", silent_reading)
      .evaluate({.probabilities = true}, silent_reading);
}

Search::Search(const ConfigFile& file, const FitData& data, const StoredSearch& search,
               const std::filesystem::path& folder, const StopSignal& stop)
    : data_(data),
      search_(search),
      stop_(stop),
      jobs_(runs_of(file, SweepOptions{{}, search.plan.repeats, search.plan.folds}, folder)),
      ranking_(in_order(file, search.plan), search.metric) {
  for (SweepRun& job : jobs_) {
    job.config = shortened(job.config, search.plan.fraction);
    job.config.task.folds = search.plan.folds;
  }
  for (const SearchRound& round : rounds_of(search.plan)) {
    ranking_.begin(round);
    count_ += jobs_of(round).size();
  }
}

std::vector<CandidateResult> Search::results() {
  for (const SearchRound& round : rounds_of(search_.plan)) {
    ranking_.begin(round);
    train(jobs_of(round));
    if (stop_.received() != 0) return {};
    ranking_.end_round();
  }
  auto results = ranking_.results();
  if (auto winner = ensemble()) {
    if (winner->members.size() == 1) results.erase(results.begin());
    results.insert(results.begin(), std::move(*winner));
  }
  return stop_.received() != 0 ? std::vector<CandidateResult>() : results;
}

/// The slowest first.
std::vector<SweepRun> Search::jobs_of(const SearchRound& round) const {
  std::vector<SweepRun> jobs;
  for (const std::string& name : search_.plan.candidates)
    if (ranking_.is_left(name))
      std::ranges::copy_if(jobs_, std::back_inserter(jobs), [&](const SweepRun& job) {
        return job.variant == name && job.fold >= round.first_fold && job.fold <= round.last_fold;
      });
  return jobs;
}

void Search::train(const std::vector<SweepRun>& jobs) {
  StopQuestion question(stop_);
  question.ask();  // from here on: a run may read its data while others train
  for_each_side_by_side(
      indices_below(jobs.size()), [&] { return stop_.received() != 0; },
      [&](std::size_t i, bool) {
        SilentProgress silent(stop_);
        const VariantRun run = carry_out(jobs[i], false, silent);
        if (run.outcome.signal == 0) add(jobs[i].variant, run);
      });
}

void Search::add(const std::string& name, const VariantRun& run) {
  const std::lock_guard lock(adding_);
  ranking_.add(name, run);
  const CandidateResult& ahead = *ranking_.ahead();
  const std::string so_far =
      fmt::format("ahead: {} {:.4f}", ahead.name, mean_of(ahead.scores(search_.metric)));
  ++done_;
  if (bar_.on_terminal())
    bar_.draw(static_cast<double>(done_) / static_cast<double>(count_),
              fmt::format(" {}/{}  {}", done_, count_, so_far));
  else
    print_note(fmt::format("{}/{}  {}, {}: {} {:.4f}; {}\n", done_, count_, name, name_of(run),
                           search_.metric, value_of(evaluation_of(run), search_.metric), so_far));
}

std::optional<CandidateResult> Search::ensemble() const {
  const auto folds = static_cast<std::size_t>(search_.plan.repeats * search_.plan.folds);
  std::vector<CandidateResult> candidates = ranking_.results();
  std::erase_if(candidates, [&](const auto& result) { return result.runs.size() < folds; });
  if (!can_be_averaged(data_)) return std::nullopt;
  std::vector evaluations(candidates.size(), std::vector<Evaluation>(folds));
  for_each_side_by_side(
      indices_below(candidates.size() * folds), [&] { return stop_.received() != 0; },
      [&](std::size_t i, bool) {
        const VariantRun& run = candidates[i / folds].runs[i % folds];
        evaluations[i / folds][i % folds] = evaluation_with_probabilities(run.folder);
      });
  if (stop_.received() != 0) return std::nullopt;
  return averaged_result(candidates, selected_ensemble(evaluations, search_.metric));
}

}  // namespace qkv::commands
