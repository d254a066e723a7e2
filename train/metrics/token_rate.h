#pragma once

#include <cstdint>

#include "core/shape.h"

namespace qkv {

/// Tokens per second of training alone, since the last evaluation. The first step of a process also
/// starts threads and allocates memory; it counts only until there is another.
class TokenRate {
 public:
  /// Adds a step that took `seconds`.
  void add(Index tokens, double seconds) {
    if (restarts_ || steps_ == 1) tokens_ = 0, seconds_ = 0;
    restarts_ = false;
    tokens_ += static_cast<double>(tokens);
    seconds_ += seconds;
    ++steps_;
  }
  /// Restarts the average with the next step.
  void restart() { restarts_ = true; }
  double tokens_per_second() const { return seconds_ > 0 ? tokens_ / seconds_ : 0; }

 private:
  double tokens_ = 0, seconds_ = 0;
  bool restarts_ = false;
  std::int64_t steps_ = 0;  ///< of the process
};

}  // namespace qkv
