#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/tasks/evaluation.h"

namespace qkv {

/// An ensemble of candidates and the evaluation of each fold.
struct SelectedEnsemble {
  std::vector<std::size_t> members;  ///< indices of the candidates, in the order of their selection
  std::vector<Evaluation> folds;
};

/// Forward selection (Caruana et al. 2004, "Ensemble Selection from Libraries of Models"): begins
/// with the first candidate, and adds the one with which the mean score of the folds is the
/// highest, as long as that is higher than without. Of the ensembles on that way it is the smallest
/// that is worse than the last one by no more than the standard error of the folds' differences
/// (Breiman et al. 1984, "Classification and Regression Trees"). `candidates`: of each the
/// evaluations of all folds with probabilities. `metric`: as in `Evaluation::score_by`. Throws
/// UserError as `averaged`.
SelectedEnsemble selected_ensemble(std::span<const std::vector<Evaluation>> candidates,
                                   const std::string& metric);

}  // namespace qkv
