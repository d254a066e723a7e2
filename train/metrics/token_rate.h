#pragma once

#include <cstdint>

#include "core/shape.h"

namespace qkv {

/// Tokens per second of training alone, since the last evaluation. The first step of a process also
/// starts threads and allocates memory; it counts only until there is another.
class TokenRate {
 public:
  /// Adds a step that took `seconds`.
  void add(Index tokens, double seconds);
  /// Restarts the average with the next step.
  void restart() { restarts_ = true; }
  double tokens_per_second() const;

 private:
  double tokens_ = 0, seconds_ = 0;
  bool restarts_ = false;
  std::int64_t steps_ = 0;  ///< of the process
};

}  // namespace qkv
