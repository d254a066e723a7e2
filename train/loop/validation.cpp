#include "train/loop/validation.h"

#include <optional>
#include <utility>

namespace qkv {

Evaluation evaluate_now(const Run& run, Split split) {
  std::optional<UseAverage> averaged;
  if (run.average) averaged.emplace(run.parameters, *run.average);
  return run.task->evaluate(*run.network, split);
}

double take_interval_loss(Run& run) {
  require<Error>(run.interval_steps > 0,
                 "step {}: every update since the last evaluation was left out, as none was "
                 "finite; lower optimizer.lr and resume from the last checkpoint",
                 run.step);
  const auto steps = static_cast<double>(std::exchange(run.interval_steps, 0));
  return std::exchange(run.interval_loss, 0) / steps;
}

bool take_if_best(Run& run, const Evaluation& valid) {
  const double score = valid.score_by(run.config.train.select);
  const bool better =
      score > run.best_score || (score == run.best_score && valid.loss < run.best_loss);
  if (!better) return false;
  run.best_score = score;
  run.best_loss = valid.loss;
  run.best_step = run.step;
  return true;
}

}  // namespace qkv
