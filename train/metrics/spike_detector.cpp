#include "train/metrics/spike_detector.h"

#include <algorithm>

namespace qkv {

std::optional<double> SpikeDetector::add(double norm) {
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

}  // namespace qkv
