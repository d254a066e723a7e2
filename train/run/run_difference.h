#pragma once

#include <optional>
#include <span>
#include <string>

#include "train/metrics/metrics.h"
#include "train/storage/checkpoint.h"

namespace qkv {

/// Where two results that should be equal bit for bit differ first.
struct Difference {
  std::string place;  ///< "/model/head.weight[3]", "valid at step 40: loss"
  std::string expected, found;
};

/// Compares two checkpoints: step, parameters, optimizer state, and everything else in them.
std::optional<Difference> first_difference(const Checkpoint& expected, const Checkpoint& found);

/// Compares evaluations, of which only the times may differ.
std::optional<Difference> first_difference(std::span<const MetricsEvent> expected,
                                           std::span<const MetricsEvent> found);

}  // namespace qkv
