#pragma once

#include <cstdint>
#include <optional>

namespace qkv {

/// Notices gradient norms far above their running mean, which often come before a divergence.
class SpikeDetector {
 public:
  /// Adds the norm of a step. The ratio to the mean before it when that is above 10, unless one of
  /// the last 100 steps gave one, too, or there were fewer than 20.
  std::optional<double> add(double norm);

 private:
  double mean_ = 0;
  std::int64_t steps_ = 0, quiet_until_ = 20;
};

}  // namespace qkv
