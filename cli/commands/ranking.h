#pragma once

#include <string>
#include <vector>

#include "cli/commands/sweep_run.h"
#include "train/fit/search_plan.h"

/// Candidates of a search, ranked by their score.
namespace qkv::commands {

/// The evaluation that ranks a run: on the examples of its fold, else on the validation split.
const Evaluation& evaluation_of(const VariantRun& run);

/// "seed 1, fold 3", "seed 1"
std::string name_of(const VariantRun& run);

/// The loss or a metric.
double value_of(const Evaluation& evaluation, const std::string& metric);

/// A candidate and its runs, over folds or seeds.
struct CandidateResult {
  std::string name;
  std::vector<std::string> members;  ///< the candidates of an ensemble, else the candidate itself
  std::vector<VariantRun> runs = {};

  /// The metric of each run, in their order.
  std::vector<double> scores(const std::string& metric) const;
  /// The mean score, the higher the better.
  double rank(const std::string& metric) const;
  double seconds() const;
};

/// The candidates of a search by rounds (`rounds_of`).
class Ranking {
 public:
  /// Among equally good candidates the first is ahead.
  Ranking(const std::vector<std::string>& names, std::string metric);

  void begin(const SearchRound& round) { left_ = static_cast<std::ptrdiff_t>(round.candidates); }
  bool is_left(const std::string& name) const;
  void add(const std::string& name, const VariantRun& run);
  void end_round();

  /// The best of those that are left; nothing before a run was added.
  const CandidateResult* ahead() const;
  /// The best first, those that were left out in an earlier round last.
  const std::vector<CandidateResult>& results() const { return results_; }

 private:
  std::vector<CandidateResult> results_;
  std::string metric_;
  std::ptrdiff_t left_ = 0;
};

/// {"name", "scores", "mean", "runs", "parameters", "seconds"} of each.
Json to_json(const std::vector<CandidateResult>& candidates, const std::string& metric);
/// A row for each of `to_json`; `runs`: what their runs are, such as "folds".
Cells candidate_table(const Json& candidates, const std::string& metric, const std::string& runs);

}  // namespace qkv::commands
