#pragma once

#include <filesystem>
#include <functional>
#include <span>

#include "layers/context.h"
#include "train/config/trainer_options.h"
#include "train/loop/callback.h"
#include "train/loop/outcome.h"

namespace qkv {

/// A problem that a module of a program's own is trained on, as functions. Examples are indices
/// from 0 on in each split. The functions are called by several threads at once.
struct Problem {
  Index train = 0, valid = 0, test = 0;  ///< examples of the splits
  /// The mean loss of some examples and the number of targets that it is the mean of. `context`
  /// has the random numbers of dropout (`Context::dropped`) in training and none in evaluation.
  std::function<BatchLoss(Split split, std::span<const Index> examples, Context& context)> loss;
  /// Loss, metrics and score of a split; by default the mean loss, the lower the better.
  std::function<Evaluation(Split split)> evaluate = {};
};

/// Trains a module as the program trains its models: shards of batches on all threads, evaluations,
/// checkpoints, the folder of a run (`RunFolder`). Continues the training in `folder` if it holds
/// one, with the same bits as one that was never stopped, and returns at once where that is
/// finished. In the end the module is the best checkpoint, and the outcome's test evaluation is of
/// that; after a signal it is the last step. The name in the options may be empty: the folder's.
///
/// A training that continues may have another learning rate and schedule, other limits of
/// gradients, and other numbers of steps, evaluations and checkpoints; a message to the callback
/// says which changed. The functions of the problem and the module's call operator are not
/// compared.
///
/// Throws UserError for options that an own module does not have (train.memory, train.tensorboard,
/// and train.init, for which `load` of train/storage/module_file.h reads parameters), when the
/// folder holds a training with other options than these or other sizes of splits, or a run of the
/// program, and while another process trains in it; CheckpointError when its checkpoint does not
/// fit the module; and as `train` of train/loop/trainer.h.
Outcome train(Module& module, const Problem& problem, const TrainerOptions& options,
              const std::filesystem::path& folder, Callback& callback);
Outcome train(Module& module, const Problem& problem, const TrainerOptions& options,
              const std::filesystem::path& folder);

}  // namespace qkv
