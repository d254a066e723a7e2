#include "train/run/training.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "train/run/freeze.h"

namespace qkv {
namespace {

/// The steps of all epochs, the last of which may be begun.
std::int64_t last_step_of(const TrainOptions& train, Index examples) {
  if (train.epochs == 0) return train.steps;
  const auto per_step = static_cast<double>(train.batch * train.accumulate);
  const double steps = train.epochs * static_cast<double>(examples) / per_step;
  // Rounding errors begin no step: 1.1 epochs of 100 examples are 110.00000000000001.
  constexpr double rounding = 1e-9;
  return std::max<std::int64_t>(std::llround(std::ceil(steps * (1 - rounding))), 1);
}

/// With averaging, the prefix of the parameters themselves in a checkpoint's optimizer state.
constexpr std::string_view live = "live.";

/// Moves the parameters themselves out of the optimizer state of a checkpoint whose model is their
/// average. Throws ValueError.
void restore_average(Training& training, std::map<std::string, Tensor>& state) {
  if (training.average) training.average->load(state_of(training.module()));
  for (const auto& [path, parameter] : training.parameters) {
    const auto found = state.find(std::string(live) + path);
    if (found == state.end()) continue;
    require<ValueError>(found->second.shape() == parameter->shape(),
                        "{} has shape {} instead of {}", found->first, found->second.shape(),
                        parameter->shape());
    parameter->assign(found->second);
    state.erase(found);
  }
}

}  // namespace

void Training::begin() {
  const TrainOptions& train = options().train;
  last_step = last_step_of(train, size(Split::train));
  freeze_parts(module(), train.freeze);
  parameters = qkv::parameters(module());
  OptimizerOptions chosen = options().optimizer;
  if (train.on_divergence == OnDivergence::detect) chosen.require_gradients = true;
  optimizer = make_optimizer(chosen);
  if (train.ema > 0) average.emplace(train.ema);
}

void Training::restore(const Checkpoint& checkpoint, const std::filesystem::path& file) {
  load_parameters(checkpoint, file);
  try {
    auto state = checkpoint.optimizer;
    restore_average(*this, state);
    optimizer->load_state(parameters, state);
  } catch (const ValueError& error) {
    throw CheckpointError(fmt::format("{}: {}", file.string(), error.what()));
  }
  const auto count = [&](const char* name) {
    return static_cast<std::int64_t>(checkpoint.progress.at(name));
  };
  step = checkpoint.step;
  updates = step == 0 ? 0 : count("updates");
  interval_loss = checkpoint.progress.at("interval_loss");
  interval_steps = count("interval_steps");
  best_score = checkpoint.progress.at("best_score");
  best_loss = checkpoint.progress.at("best_loss");
  best_step = count("best_step");
  metrics = checkpoint.metrics;
}

Checkpoint Training::checkpoint(const std::filesystem::path& folder) const {
  Checkpoint checkpoint;
  checkpoint.step = step;
  checkpoint.config = config_text(folder);
  checkpoint.model = state_of(module());
  checkpoint.optimizer = optimizer->state();
  if (average && !average->values().empty()) {  // empty before the first update
    for (const auto& [path, value] : checkpoint.model)
      checkpoint.optimizer[std::string(live) + path] = value;
    checkpoint.model = average->values();
  }
  checkpoint.progress = {{"interval_loss", interval_loss},
                         {"interval_steps", static_cast<double>(interval_steps)},
                         {"best_score", best_score},
                         {"best_loss", best_loss},
                         {"best_step", static_cast<double>(best_step)},
                         {"updates", static_cast<double>(updates)},
                         {"permuted_examples", 1}};
  checkpoint.metrics = metrics;
  return checkpoint;
}

bool is_finished(const Training& training) {
  const TrainOptions& train = training.options().train;
  // `step` and `best_step` are those of evaluations or later.
  const std::int64_t without_better =
      training.step / train.eval_every - training.best_step / train.eval_every;
  return training.step >= training.last_step ||
         (train.patience > 0 && training.best_step > 0 && without_better >= train.patience);
}

std::int64_t load_best(Training& training, const RunFolder& folder) {
  training.optimizer = make_optimizer(training.options().optimizer);
  training.average.reset();
  const std::filesystem::path file = find_checkpoint(folder.path());
  const Checkpoint checkpoint = read_checkpoint(file, CheckpointPart::without_optimizer);
  training.load_parameters(checkpoint, file);
  return checkpoint.step;
}

}  // namespace qkv
