#pragma once

#include "train/run/run.h"

/// Evaluations in a training.
namespace qkv {

/// Evaluates the model that a checkpoint of the run holds now: with train.ema the averages.
Evaluation evaluate_now(const Run& run, Split split);

/// The mean loss of the updates since this was last called. Throws Error when there were none, as
/// all were left out.
double take_interval_loss(Run& run);

/// Whether an evaluation of the valid split has the best score so far, by train.select, or at equal
/// scores the lower loss. The run then has it as its best.
bool take_if_best(Run& run, const Evaluation& valid);

}  // namespace qkv
