#pragma once

#include <span>
#include <vector>

#include "train/tasks/task.h"

namespace qkv {

/// Several models as one, which gives each choice the mean of their probabilities (Lakshminarayanan
/// et al. 2017, "Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles"). One
/// model stays as it is.

/// From the evaluations of each on the same examples, with the tokens of the first. Throws
/// UserError when the task does not choose among labels, or the labels or the right answers differ.
Evaluation averaged(std::span<const Evaluation> evaluations);
/// From the predictions of each for the same word. Throws UserError when they write texts or have
/// other choices.
Prediction averaged(std::span<const Prediction> predictions);
/// From the predictions of each for all words of a text. Throws UserError also when they are about
/// different words.
std::vector<Prediction> averaged(const std::vector<std::vector<Prediction>>& predictions);
/// From the predictions of each for all texts, with the tokens of the first. A text that some model
/// has no prediction for has its error, and one whose predictions cannot be averaged says why.
std::vector<TextPredictions> averaged(std::vector<std::vector<TextPredictions>> predictions);

}  // namespace qkv
