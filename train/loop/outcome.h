#pragma once

#include <optional>

#include "train/tasks/evaluation.h"

namespace qkv {

/// How a training run ended.
struct Outcome {
  int signal = 0;  ///< the signal that stopped it early, or 0
  double seconds = 0;
  /// Metrics of the best checkpoint; nothing when there is no test split or the run was stopped.
  std::optional<Evaluation> test = {};
};

}  // namespace qkv
