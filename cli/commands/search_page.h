#pragma once

#include <string>
#include <vector>

#include "cli/commands/ranking.h"
#include "cli/commands/search_plots.h"

namespace qkv::commands {

/// The title of a search's page, and its columns and axes.
struct SearchPage {
  std::string title;
  std::string metric;
  std::string runs;                 ///< what the runs of a candidate are, such as "folds"
  std::vector<CandidateAxis> axes;  ///< in which the candidates differ; empty: in their names alone
};

/// An HTML page without scripts: the candidates as a table, plots of their options and scores, and
/// the learning curves of their runs, which are read from the runs' folders. It has no times, so
/// that a search that was killed ends with an equal page.
std::string search_page(const SearchPage& page, const std::vector<CandidateResult>& candidates);

}  // namespace qkv::commands
