#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/shape.h"
#include "train/config/toml_document.h"

namespace qkv {

/// The points of sweeps, each as a table of changes with a name, "lr 0.01, width 32".
///
/// The grid: for each sweep, every combination of the values of its lists. Throws ConfigError when
/// one has a range, which has no grid.
std::vector<TomlTable> grid_of(std::span<const TomlSweep> sweeps, std::string_view source);

/// Random search (Bergstra & Bengio 2012): points that differ, at most `count`, by turns of the
/// sweeps. Lists and ranges are uniform, log ranges uniform in their logarithm; a range between two
/// integers has integers, another one numbers of three digits. The first n points are those of a
/// smaller count.
std::vector<TomlTable> random_points(std::span<const TomlSweep> sweeps, Index count,
                                     std::uint64_t seed);

/// Each variant with each point's changes, named "variant, point"; without variants the points.
std::vector<TomlTable> crossed(std::span<const TomlTable> variants,
                               std::span<const TomlTable> points);

}  // namespace qkv
