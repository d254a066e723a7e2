#include "train/loop/validation.h"

#include <optional>
#include <utility>

namespace qkv {

Evaluation evaluate_now(const Training& training, Split split) {
  std::optional<UseAverage> averaged;
  if (training.average) averaged.emplace(training.parameters, *training.average);
  return training.evaluate(split);
}

double take_interval_loss(Training& training) {
  require<Error>(training.interval_steps > 0,
                 "step {}: every update since the last evaluation was left out, as none was "
                 "finite; lower optimizer.lr and resume from the last checkpoint",
                 training.step);
  const auto steps = static_cast<double>(std::exchange(training.interval_steps, 0));
  return std::exchange(training.interval_loss, 0) / steps;
}

bool take_if_best(Training& training, const Evaluation& valid) {
  const double score = valid.score_by(training.options().train.select);
  const bool better = score > training.best_score ||
                      (score == training.best_score && valid.loss < training.best_loss);
  if (!better) return false;
  training.best_score = score;
  training.best_loss = valid.loss;
  training.best_step = training.step;
  return true;
}

}  // namespace qkv
