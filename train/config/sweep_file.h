#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "train/config/config.h"
#include "train/config/toml_document.h"

namespace qkv {

/// A configuration file whose variants are the points of its [[sweep]]s or, where it has variants
/// too, one of each with each point, all points of the first variant first.
struct SweepFile : ConfigFile {
  std::vector<TomlSweep> sweeps;
  std::vector<std::string> crossed;  ///< names of the file's own variants
};

/// Reads such a file; its points are those of the grid, or with `trials` so many random ones
/// (train/config/sweep_points.h). Its probes, which are about the file's own models, are left out.
/// Throws ConfigError as `read_config` does.
SweepFile read_sweep(const std::filesystem::path& path, std::span<const std::string> overrides,
                     Index trials);

}  // namespace qkv
