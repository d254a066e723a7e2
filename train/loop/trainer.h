#pragma once

#include "train/loop/callback.h"
#include "train/loop/outcome.h"
#include "train/ranks/communicator.h"
#include "train/run/training.h"
#include "train/storage/run_folder.h"

namespace qkv {

/// Trains until the training is finished or until the callback asks to stop, with evaluations and
/// checkpoints. Afterwards, unless stopped, the module is the best checkpoint. The best is the
/// one with the best score on the validation split, by train.select where it names a metric;
/// without that split it is the last.
///
/// Throws Error when a loss, a gradient, a parameter or the optimizer's state stops being finite,
/// unless train.on_divergence leaves such updates out. A checkpoint is saved only once the loss and
/// the gradients of the next batch are known to be finite, too, so that a run can resume from it
/// with a lower learning rate; a stop by a signal does not wait for them.
///
/// On several ranks, whose runs are equal, each computes some of a step's shards, and all make the
/// same update. Rank 0 alone evaluates, writes and has the best checkpoint and a test result in the
/// end. A signal that one rank receives stops all of them after the same step. Before a checkpoint
/// is saved, Error is thrown when the states of ranks are no longer equal.
Outcome train(Training& training, const RunFolder& folder, Callback& callback,
              const Communicator& ranks = single_process);

}  // namespace qkv
