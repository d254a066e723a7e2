#pragma once

#include "train/run/training.h"

/// Evaluations in a training.
namespace qkv {

/// Evaluates the model that a checkpoint would hold now: with train.ema the averages.
Evaluation evaluate_now(const Training& training, Split split);

/// The mean loss of the updates since this was last called. Throws Error when there were none, as
/// all were left out.
double take_interval_loss(Training& training);

/// Whether an evaluation of the valid split has the best score so far, by train.select, or at equal
/// scores the lower loss. The training then has it as its best.
bool take_if_best(Training& training, const Evaluation& valid);

}  // namespace qkv
