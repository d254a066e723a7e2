#include "train/metrics/token_rate.h"

namespace qkv {

void TokenRate::add(Index tokens, double seconds) {
  if (restarts_ || steps_ == 1) tokens_ = 0, seconds_ = 0;
  restarts_ = false;
  tokens_ += static_cast<double>(tokens);
  seconds_ += seconds;
  ++steps_;
}

double TokenRate::tokens_per_second() const {
  return seconds_ > 0 ? tokens_ / seconds_ : 0;
}

}  // namespace qkv
