#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/config/config.h"
#include "train/run/training.h"
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
  std::string init;  ///< what train.init loaded (`load_initial`); empty without it
};

/// A model and the step of the checkpoint that holds it.
struct SavedModel : LoadedModel {
  std::int64_t step = 0;
};

/// A training run of a config: its model and task in training.
struct Run final : LoadedModel, Training {
  const Config& options() const override { return config; }
  Module& module() const override { return *network; }
  Index size(Split split) const override { return task->size(split); }
  Index tokens(Index example) const override { return task->tokens(example); }
  BatchLoss loss(std::span<const Index> examples, Context& context) const override {
    return task->loss(*network, examples, context);
  }
  Evaluation evaluate(Split split) const override { return task->evaluate(*network, split); }
  std::optional<StepMemory> memory() const override;
  std::vector<std::string> data_summary() const override;
  std::string config_text(const std::filesystem::path& folder) const override;
  Checkpoint checkpoint(const std::filesystem::path& folder) const override;
  /// Throws CheckpointError also for another number of heads than that of the checkpoint's config.
  void load_parameters(const Checkpoint& checkpoint, const std::filesystem::path& file) override;

  using Training::begin;
  using Training::restore;

  std::string data_hash;   ///< of the encoded training examples
  std::string valid_hash;  ///< of the encoded validation examples; empty without any
};

/// Shows nothing of what is read.
inline ReadCallback silent_reading;

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
SavedModel load_model(const std::filesystem::path& model);
/// A model with fresh parameters; no data is read. Throws FileError when a vocabulary is missing or
/// invalid.
LoadedModel fresh_model(const Config& config, const Task::Vocabularies& vocabularies);
/// The model of a checkpoint that was read from `file`.
SavedModel model_of(const Checkpoint& checkpoint, const std::filesystem::path& file);
/// The model before its first step.
LoadedModel untrained(const LoadedModel& model);
/// A model of other options with the weights of `model`; additional parameters are initialized.
LoadedModel with_options(const LoadedModel& model, const ModelOptions& options);

}  // namespace qkv
