#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "train/trainer.h"

/// The life cycle of a run in its folder, which train, resume and compare share.
namespace qkv {

/// Creates the folder, writes the config and trains. Throws UserError when the folder holds a
/// checkpoint already, and as `train` does.
Outcome start(Run& run, const RunFolder& folder, Callback& callback);

/// Continues from the checkpoint that `run` was restored from; drops later metrics.
/// `seconds` counts the earlier sessions, too.
Outcome resume(Run& run, const RunFolder& folder, Callback& callback);

/// The outcome of a run that has reached its last step and was tested; `run.network` becomes the
/// best checkpoint, as after `train`. Nothing when there is training left.
std::optional<Outcome> finished(Run& run, const RunFolder& folder);

/// The newest valid checkpoint and its file; the callback gets a message for each damaged one.
/// Throws UserError when the folder holds no run, FileError when none of its checkpoints is valid.
std::pair<Checkpoint, std::filesystem::path> newest_valid_checkpoint(const RunFolder& folder,
                                                                     Callback& callback);

}  // namespace qkv
