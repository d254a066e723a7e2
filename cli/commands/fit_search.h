#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/fit_data.h"
#include "cli/commands/ranking.h"
#include "cli/progress.h"

/// The search of `qkv fit`.
namespace qkv::commands {

/// Whether models of these data can be averaged: each example has one label, and there are not too
/// many probabilities to keep.
bool can_be_averaged(const FitData& data);

/// A search of `seconds`, planned by the time that each candidate takes on one thread, as a search
/// trains it. A candidate that cannot be trained on these data is left out with a message. `metric`
/// may be empty, and becomes the task's first. Throws UserError for data or a metric with which
/// there is no search.
SearchPlan planned_search(const ConfigFile& file, const FitData& data, std::string& metric,
                          double seconds, Callback& callback);

/// A config with a fraction of its steps.
Config shortened(Config config, double fraction);

/// The evaluation of a run's test split, with the probabilities of all labels.
Evaluation evaluation_with_probabilities(const std::filesystem::path& run);

/// Trains candidates on folds, and shows after each training which candidate is ahead.
class Search {
 public:
  /// All must outlive it.
  Search(const ConfigFile& file, const FitData& data, const StoredSearch& search,
         const std::filesystem::path& folder, const StopSignal& stop);

  /// The candidates, the best first, before them their ensemble where that is better
  /// (`selected_ensemble`); nothing after a signal.
  std::vector<CandidateResult> results();

 private:
  std::vector<SweepRun> jobs_of(const SearchRound& round) const;
  void train(const std::vector<SweepRun>& jobs);
  void add(const std::string& name, const VariantRun& run);
  /// The best ensemble, or a candidate alone, of those that were trained on all folds, with the
  /// probabilities of all labels; nothing where models cannot be averaged.
  std::optional<CandidateResult> ensemble() const;

  const FitData& data_;
  const StoredSearch& search_;
  const StopSignal& stop_;
  std::vector<SweepRun> jobs_;
  Ranking ranking_;
  std::size_t count_ = 0, done_ = 0;  ///< trainings
  std::mutex adding_;
  Bar bar_;
};

}  // namespace qkv::commands
