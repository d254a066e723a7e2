#pragma once

#include <filesystem>

#include "core/parameter.h"

namespace qkv {

/// Writes the parameters of a module to a file: a checkpoint (train/storage/checkpoint.h) that
/// holds nothing else. Throws as `write_checkpoint`.
void save(const std::filesystem::path& file, const Module& module);

/// Gives a module the parameters of a checkpoint, whatever else that holds. Throws as
/// `read_checkpoint`, and ValueError naming the file and every difference when they are those of
/// another module; the module is unchanged then.
void load(const std::filesystem::path& file, Module& module);

}  // namespace qkv
