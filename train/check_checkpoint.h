#pragma once

#include <filesystem>

#include "train/config/config.h"
#include "train/storage/checkpoint.h"

namespace qkv {

/// Throws CheckpointError naming the file unless a training with this config can continue from the
/// checkpoint: its checksum shows that it was not damaged, not that a run wrote it. The steps so
/// far have numbers of examples that can be counted, /progress has what a run needs within its
/// bounds, the optimizer's state is finite, and the metrics are JSON objects, one a line.
void check_checkpoint(const Checkpoint& checkpoint, const Config& config,
                      const std::filesystem::path& file);

}  // namespace qkv
