#pragma once

#include <cstddef>
#include <vector>

namespace qkv::fuzz {

/// Files of checkpoints with their seals: one of a model, and two of which the HDF5 library has
/// more to read.
const std::vector<std::vector<std::byte>>& checkpoint_files();

}  // namespace qkv::fuzz
