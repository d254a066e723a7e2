#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace qkv {

/// Notices gradient norms far above their running mean, which often come before a divergence.
class SpikeDetector {
 public:
  /// Adds the norm of a step. The ratio to the mean before it when that is above 10, unless one of
  /// the last 100 steps gave one, too, or there were fewer than 20.
  std::optional<double> add(double norm) {
    constexpr double factor = 10;
    constexpr std::int64_t window = 100;
    const bool spikes = steps_ >= quiet_until_ && mean_ > 0 && norm > factor * mean_;
    const std::optional<double> ratio = spikes ? std::optional(norm / mean_) : std::nullopt;
    if (spikes) quiet_until_ = steps_ + window;
    ++steps_;
    // The mean of all at first, then an exponential one over about `window` steps.
    mean_ += (norm - mean_) / static_cast<double>(std::min(steps_, window));
    return ratio;
  }

 private:
  double mean_ = 0;
  std::int64_t steps_ = 0, quiet_until_ = 20;
};

}  // namespace qkv
