#pragma once

#include <filesystem>

#include "train/config/config.h"
#include "train/storage/checkpoint.h"

namespace qkv {

/// Throws CheckpointError naming the file unless a training with these options can continue from
/// the checkpoint: its checksum shows that it was not damaged, not that a run wrote it. The index
/// of the next example fits 64 bits, /progress has what a run needs within its bounds, parameters
/// and optimizer state are finite, and each line of the metrics is an evaluation.
void check_checkpoint(const Checkpoint& checkpoint, const TrainerOptions& options,
                      const std::filesystem::path& path);

}  // namespace qkv
