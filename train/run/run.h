#pragma once

#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "optim/moving_average.h"
#include "optim/optimizer.h"
#include "train/config/config.h"
#include "train/storage/checkpoint.h"
#include "train/storage/run_folder.h"
#include "train/tasks/network.h"
#include "train/tasks/task.h"

namespace qkv {

/// A model with its task and config, ready to use.
struct LoadedModel {
  Config config;
  std::shared_ptr<const Task> task;
  std::unique_ptr<Network> network;
  std::int64_t step = 0;  ///< updates done
  std::string init;       ///< what train.init loaded (`load_initial`); empty without it
};

/// The state of a training run: exactly what a checkpoint holds. Randomness and the position in the
/// data follow from the seed and the step.
struct Run : LoadedModel {
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
  std::string data_hash;       ///< of the encoded training examples
  std::string valid_hash;      ///< of the encoded validation examples; empty without any
};

/// Shows nothing of what is read.
inline ReadCallback silent_reading;

/// Whether no step is left: after the last one, or when the last `train.patience` evaluations were
/// no better than one before.
bool is_finished(const Run& run);

/// Fresh parameters or those of train.init, data read from where the config says, or those of
/// `task`, which read the same files for a config of an equal task (`have_equal_tasks`). Throws
/// UserError.
Run start_run(const Config& config, ReadCallback& callback = silent_reading,
              std::shared_ptr<const Task> task = nullptr);
/// A run at a checkpoint; `config` is the checkpoint's with the user's changes. Throws
/// UserError when the training or validation data has changed (of an imported model, which has no
/// hash of its data, only the vocabularies are compared), and CheckpointError naming the file and
/// every parameter that is missing, not expected or of another shape.
Run restore_run(const Config& config, const Checkpoint& checkpoint,
                const std::filesystem::path& file, ReadCallback& callback = silent_reading);
/// The checkpoint of a run; its relative paths lead from `folder`, or from one above it.
Checkpoint checkpoint_of(const Run& run, const std::filesystem::path& folder = {});

/// The config that a checkpoint was written with. Relative paths in it lead from the checkpoint's
/// folder or one above it.
Config config_of(const Checkpoint& checkpoint, const std::filesystem::path& file);
/// The config of the folder's config.toml, for a run that has no checkpoint.
Config config_of(const RunFolder& folder);

/// The task of a model with its data, whose vocabulary begins with that of train.init: as in the
/// model if the data are the same. Throws UserError.
std::unique_ptr<Task> task_with_data(const LoadedModel& model, ReadCallback& callback);
/// Loads a model for inference; no data is read. `model` is a checkpoint file or a run folder.
/// Throws UserError, and CheckpointError when the file is damaged.
LoadedModel load_model(const std::filesystem::path& model);
/// A model with fresh parameters, for those of a file; no data is read. Throws FileError when a
/// vocabulary is missing or invalid.
LoadedModel fresh_model(const Config& config, const Task::Vocabularies& vocabularies);
/// The model of a checkpoint that was read from `file`.
LoadedModel model_of(const Checkpoint& checkpoint, const std::filesystem::path& file);
/// Replaces the parameters of `run` by those of the folder's best checkpoint and returns its step.
/// Frees first the optimizer state and the averages, which training alone needs.
std::int64_t load_best(Run& run, const RunFolder& folder);
/// The model before its first step.
LoadedModel untrained(const LoadedModel& model);
/// A model of other options with the weights of `model`; additional parameters are initialized.
LoadedModel with_options(const LoadedModel& model, const ModelOptions& options);
/// Overwrites the network's parameters with a checkpoint's; errors as in `restore_run`, also for
/// another number of heads than that of the checkpoint's config.
void load_parameters(Network& network, const Checkpoint& checkpoint,
                     const std::filesystem::path& file);

}  // namespace qkv
