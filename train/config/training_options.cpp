#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/config/option_groups.h"

namespace qkv {
namespace {

constexpr Condition counts_steps = {"train.epochs = 0",
                                    [](const Config& c) { return c.train.epochs == 0; }};

/// An option that some optimizers read, which its help names.
Option read_by(bool OptimizerTraits::*reads, Option option) {
  const auto names =
      names_with(optimizer_kinds(), [=](const OptimizerRow& row) { return row.reads.*reads; });
  option.help += fmt::format(" ({})", list_of(names, "", ", "));
  option.needs = "optimizer.kind " + list_of(names);
  option.holds = [=](const Config& c) {
    return row_of(optimizer_kinds(), c.optimizer.kind).reads.*reads;
  };
  return option;
}

/// An option that some schedules read.
Option read_by(bool ScheduleRow::*reads, Option option) {
  const auto names =
      names_with(schedule_kinds(), [=](const ScheduleRow& row) { return row.*reads; });
  option.needs = "schedule.kind " + list_of(names);
  option.holds = [=](const Config& c) { return row_of(schedule_kinds(), c.schedule.kind).*reads; };
  return option;
}

std::optional<Conflict> name_conflict(const Config& config) {
  if (!config.name.empty()) return std::nullopt;
  return Conflict{{}, "name is missing; a run needs one, as in name = \"bank\""};
}

std::optional<Conflict> momentum_conflict(const Config& config) {
  if (!config.optimizer.nesterov || config.optimizer.momentum > 0) return std::nullopt;
  return Conflict{{"optimizer.nesterov", "optimizer.momentum"},
                  "optimizer.nesterov needs optimizer.momentum to be above 0"};
}

/// Options that exclude a start from a trained model.
std::optional<Conflict> start_conflict(const Config& config) {
  if (config.train.init.empty()) return std::nullopt;
  if (config.init != InitKind::random)
    return Conflict{{"train.init", "model.init"}, "train.init needs model.init = \"random\""};
  if (config.model.embedding != EmbeddingKind::learned)
    return Conflict{{"train.init", "model.embedding"},
                    "train.init needs model.embedding = \"learned\""};
  return std::nullopt;
}

}  // namespace

Options run_options(Config& run) {
  return {
      checked_by(name_conflict, name_option("name", run.name, "name of the run and its folder")),
      option("seed", run.seed, at_least(0), "random seed; equal seeds give equal runs"),
  };
}

Options optimizer_options(OptimizerOptions& optimizer) {
  return {
      kind_option("optimizer.kind", optimizer.kind, optimizer_kinds(), "update rule"),
      option("optimizer.lr", optimizer.lr, above(0), "learning rate"),
      read_by(&OptimizerTraits::momentum,
              option("optimizer.momentum", optimizer.momentum, below_one(), "momentum")),
      read_by(&OptimizerTraits::nesterov,
              checked_by(momentum_conflict,
                         option("optimizer.nesterov", optimizer.nesterov, "Nesterov momentum"))),
      read_by(&OptimizerTraits::beta1,
              option("optimizer.beta1", optimizer.beta1, below_one(), "decay of the first moment")),
      read_by(&OptimizerTraits::beta2, option("optimizer.beta2", optimizer.beta2, below_one(),
                                              "decay of the second moment")),
      read_by(&OptimizerTraits::amsgrad, option("optimizer.amsgrad", optimizer.amsgrad,
                                                "AMSGrad: maximum of all second moments so far")),
      read_by(&OptimizerTraits::epsilon, option("optimizer.epsilon", optimizer.epsilon, above(0),
                                                "term added to the denominator")),
      option("optimizer.weight_decay", optimizer.weight_decay, at_least(0),
             "weight decay; spares biases, norms, embeddings and positions"),
  };
}

Options schedule_options(ScheduleOptions& schedule) {
  return {
      kind_option("schedule.kind", schedule.kind, schedule_kinds(),
                  "learning rate after the warm-up"),
      option("schedule.warmup", schedule.warmup, at_least(0),
             "linear warm-up of the learning rate in steps"),
      read_by(&ScheduleRow::floor, option("schedule.floor", schedule.floor, below_one(),
                                          "final fraction of the learning rate")),
  };
}

Options train_options(TrainOptions& train) {
  return {
      checked_by(
          start_conflict,
          path_option(
              "train.init", train.init,
              "trained model to start from, a run folder or checkpoint: parameters of the same "
              "path and shape, vectors by token, and its vocabulary")),
      option(
          "train.freeze", train.freeze,
          "parts that are not trained, by their paths or the ends of these, as in [\"embedding\", "
          "\"layers.0\"]"),
      only_with(counts_steps, option("train.steps", train.steps, at_least(1), "optimizer steps")),
      option("train.epochs", train.epochs, between(0, 1e6),
             "passes over the training examples, in place of train.steps; 0: train.steps"),
      option("train.batch", train.batch, between(1, 65536), "micro-batch size in examples"),
      option("train.accumulate", train.accumulate, between(1, 65536),
             "micro-batches per step (gradient accumulation)"),
      option("train.clip", train.clip, at_least(0), "maximum gradient norm; 0: no clipping"),
      option("train.clip_value", train.clip_value, at_least(0),
             "maximum absolute value of gradient elements; 0: no clipping"),
      option("train.ema", train.ema, below_one(),
             "decay of the moving average of the weights, which is evaluated and saved; 0: none"),
      option("train.eval_every", train.eval_every, at_least(1), "steps between evaluations"),
      option("train.checkpoint_every", train.checkpoint_every, at_least(1),
             "steps between checkpoints"),
      option(
          "train.patience", train.patience, at_least(0),
          "evaluations in a row without a better checkpoint after which training ends; 0: never"),
      option("train.select", train.select,
             "metric of the validation data that selects the best checkpoint: loss, or one that "
             "eval prints; empty: the task's own"),
      kind_option("train.on_divergence", train.on_divergence, divergence_policies,
                  "handling of a loss that explodes, or of a loss or gradient that is not finite"),
      memory_option(
          "train.memory", train.memory,
          "memory budget as in \"4GB\": to keep to it, training recomputes activations in "
          "backward and computes fewer shards at a time, which changes no bits; empty: "
          "what is fastest"),
      option("train.tensorboard", train.tensorboard,
             "write a TensorBoard event file into the run's folder tensorboard (docs/metrics.md)"),
      option("train.keep", train.keep, at_least(1), "number of newest checkpoints to keep"),
  };
}

}  // namespace qkv
