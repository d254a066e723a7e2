#pragma once

#include <span>

#include "train/ranks/communicator.h"
#include "train/run/training.h"

namespace qkv {

/// Throws UserError, the same on every rank, when one of them runs another program than rank 0 or
/// has other configs (apart from where files are).
void require_equal_configs(std::span<const Config> configs, const Communicator& ranks);

/// Throws UserError, the same on every rank, when one of them has another config, other data or
/// other parameters than rank 0.
void require_equal_ranks(const Training& training, const Communicator& ranks);

/// Throws Error, the same on every rank, when parameters or optimizer state are not those of rank
/// 0: a fault of memory, or processors or libraries that compute other bits.
void require_equal_state(const Checkpoint& checkpoint, const Communicator& ranks);

}  // namespace qkv
