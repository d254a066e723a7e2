#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/context.h"
#include "optim/moving_average.h"
#include "optim/optimizer.h"
#include "train/config/config.h"
#include "train/storage/checkpoint.h"
#include "train/storage/run_folder.h"
#include "train/tasks/evaluation.h"

namespace qkv {

/// Estimated bytes of a training step, which are kept to a budget.
struct StepMemory {
  double budget;
  double state;      ///< parameters, averages and the optimizer's
  double gradients;  ///< one set of them
  /// Bytes of the activations of so many tokens, kept or recomputed in backward.
  std::function<double(double tokens, bool recomputed)> activations;
};

/// A module in training: its state, and the problem that it is trained on. The state is exactly
/// what a checkpoint holds; randomness and the position in the data follow from the seed and the
/// step. The training loop (train/loop/trainer.h) asks for nothing else.
class Training {
 public:
  virtual ~Training() = default;

  virtual const TrainerOptions& options() const = 0;
  virtual Module& module() const = 0;
  /// Number of examples.
  virtual Index size(Split split) const = 0;
  /// Number of tokens of a training example that the module reads, without padding.
  virtual Index tokens(Index example) const = 0;
  /// Weighted mean loss of some training examples, over their targets. Threads call it at once.
  virtual BatchLoss loss(std::span<const Index> examples, Context& context) const = 0;
  virtual Evaluation evaluate(Split split) const = 0;
  /// None: memory is not limited.
  virtual std::optional<StepMemory> memory() const = 0;
  /// Lines about the data, for people.
  virtual std::vector<std::string> data_summary() const = 0;
  /// The options as a config file in `folder`, where that is not empty.
  virtual std::string config_text(const std::filesystem::path& folder) const = 0;

  /// The checkpoint of this state; relative paths in its config lead from `folder`, or from one
  /// above it.
  virtual Checkpoint checkpoint(const std::filesystem::path& folder) const;
  /// Overwrites the parameters with those of a checkpoint that was read from `file`. Throws
  /// CheckpointError.
  virtual void load_parameters(const Checkpoint& checkpoint, const std::filesystem::path& file) = 0;

  std::int64_t step = 0;       ///< updates done
  std::int64_t last_step = 0;  ///< train.steps, or the steps of train.epochs
  std::int64_t updates = 0;    ///< steps whose update was not left out, which optimizers count
  std::vector<NamedParameter> parameters;
  std::unique_ptr<Optimizer> optimizer;
  std::optional<MovingAverage> average;  ///< with train.ema: evaluated and saved as the model
  double interval_loss = 0;              ///< sum of the losses since the last evaluation
  std::int64_t interval_steps = 0;
  double best_score = std::numeric_limits<double>::lowest();  ///< of the valid split, the higher
                                                              ///< the better
  double best_loss = 0;        ///< at the evaluation with the best score
  std::int64_t best_step = 0;  ///< of the checkpoint with the best score; 0: none yet
  std::string metrics;         ///< of all evaluations so far, JSON lines without times

 protected:
  Training() = default;
  Training(Training&&) = default;
  Training& operator=(Training&&) = default;

  /// Sets the parameters of `module()` up for training from step 0: those of train.freeze keep
  /// their values. Throws UserError when train.freeze names no part.
  void begin();
  /// The state of a checkpoint that `check_checkpoint` accepts. Throws CheckpointError.
  void restore(const Checkpoint& checkpoint, const std::filesystem::path& file);
};

/// Whether no step is left: after the last one, or when the last `train.patience` evaluations were
/// no better than one before.
bool is_finished(const Training& training);

/// Replaces the parameters by those of the folder's best checkpoint and returns its step. Frees
/// first the optimizer state and the averages, which training alone needs.
std::int64_t load_best(Training& training, const RunFolder& folder);

}  // namespace qkv
