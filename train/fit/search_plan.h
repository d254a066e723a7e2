#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"
#include "train/config/config.h"

namespace qkv {

/// A search over candidates by cross-validation: each is trained on folds of the training data, and
/// measured on the examples that the fold leaves out.
struct SearchPlan {
  std::vector<std::string> candidates;  ///< names, the slowest first
  Index folds = 0;
  Index repeats = 1;  ///< cross-validations, whose folds are drawn with further seeds
  /// Successive halving (Jamieson & Talwalkar 2016): after each fold the worse half is left out,
  /// until two are left. Else every candidate is trained on all folds.
  bool halves = false;
  double fraction = 1;  ///< of the steps that the candidates have by themselves
  Index seeds = 1;      ///< with which each model of the winner is trained in the end

  friend bool operator==(const SearchPlan&, const SearchPlan&) = default;
};

inline constexpr Index most_planned_folds = 10, most_planned_repeats = 3, most_planned_seeds = 3;

/// A search as the file of its folder holds it.
struct StoredSearch {
  std::string command;  ///< that began it
  std::string metric;   ///< that chooses
  SearchPlan plan;

  friend bool operator==(const StoredSearch&, const StoredSearch&) = default;
};
std::string to_json(const StoredSearch& search);
/// The search of `to_json`. Throws FileError, without the name of the file, when it is none of
/// these candidates.
StoredSearch parse_search(std::string_view json, const std::vector<Variant>& candidates);

/// Folds that the best candidates of the rounds before are trained on.
struct SearchRound {
  Index first_fold, last_fold;  ///< both are included; folds count from 1
  std::size_t candidates;

  friend bool operator==(const SearchRound&, const SearchRound&) = default;
};
std::vector<SearchRound> rounds_of(const SearchPlan& plan);

/// Seconds that one training of a candidate takes on one thread.
struct CandidateTime {
  std::string name;
  double reading, training;
};
/// Seconds that a search takes on so many threads, and the training after it of an ensemble of all
/// that are left, where the slowest candidates stay to the end.
double search_seconds(const SearchPlan& plan, std::span<const CandidateTime> times, int threads);
/// The most thorough search that ends within `seconds`, without the slowest candidates where there
/// is no time for them, on up to `most_folds` folds: at least half of the candidates without
/// halving on 5 folds or more, else with halving. Where one candidate alone takes too long, it has
/// a fraction of its steps. Where time is left, the winner is trained with several seeds, up to
/// `most_seeds`, and then the cross-validation is repeated.
SearchPlan search_plan(std::vector<CandidateTime> times, int threads, double seconds,
                       Index most_folds, Index most_seeds);

/// The mean of one or more values.
double mean_of(std::span<const double> values);
/// Their sample standard deviation; 0 of one value.
double sample_std(std::span<const double> values);

/// The mean of the scores of one or more cross-validations with K folds, and the interval in which
/// the score of as many new examples as a fold has is with a probability of 95 %, if scores are
/// normally distributed: mean ± t s sqrt(1 + 1 / K), with the sample standard deviation s of the
/// scores and the quantile t of Student's distribution of K - 1 degrees of freedom.
struct ExpectedScore {
  double mean, low, high;
};
ExpectedScore expected_score(std::span<const double> scores, Index folds);
/// The expected score of scores that are fractions p of `examples` in all K folds. The interval is
/// in [0, 1], and s at least sqrt(p (1 - p) K / examples), with p = (mean examples + 1) / (examples
/// + 2): equal scores of few examples are chance.
ExpectedScore expected_fraction(std::span<const double> scores, Index folds, Index examples);

}  // namespace qkv
