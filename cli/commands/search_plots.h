#pragma once

#include <string>
#include <vector>

#include "cli/axis.h"

/// Plots of a search, as images for an HTML page (`report::plain_page`).
namespace qkv::commands {

/// A candidate's marks.
struct PlottedCandidate {
  std::string name;
  std::string title = {};      ///< "width 32: accuracy 0.9000 ± 0.0100, 3 seeds"
  std::vector<double> scores;  ///< of its runs
  double mean = 0, std = 0;
  double shade = 1;       ///< from 0 for the worst to 1 for the best
  bool is_early = false;  ///< left out before it had all runs
};

/// An option, or anything else in which candidates differ.
struct CandidateAxis {
  Axis axis;
  std::vector<double> values;      ///< of each candidate, for the axis
  std::vector<std::string> texts;  ///< likewise, for people
};

/// The metric of a run by its steps.
struct LearningCurve {
  std::size_t candidate;
  std::string run;            ///< "seed 2"
  std::vector<Point> values;  ///< step and value
};

/// The attributes of a candidate's mark of any kind.
std::string mark_of(const PlottedCandidate& candidate);

/// A line for each candidate through its values and its mean score (Inselberg 1985). The candidates
/// are in the order of the values, here and below.
std::string parallel_coordinates(const std::vector<CandidateAxis>& axes,
                                 const std::vector<PlottedCandidate>& candidates,
                                 const std::string& metric);

/// The mean score of each candidate by its value, with the standard deviation.
std::string score_by_value(const CandidateAxis& axis,
                           const std::vector<PlottedCandidate>& candidates,
                           const std::string& metric);

/// The score of each run, a row a candidate.
std::string scores_of_runs(const std::vector<PlottedCandidate>& candidates,
                           const std::string& metric);

std::string learning_curves(const std::vector<LearningCurve>& curves,
                            const std::vector<PlottedCandidate>& candidates,
                            const std::string& metric);

}  // namespace qkv::commands
