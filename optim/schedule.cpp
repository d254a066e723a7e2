#include <algorithm>
#include <cmath>
#include <numbers>

#include "optim/optimizer.h"

namespace qkv {

double learning_rate(const ScheduleOptions& schedule, double lr, std::int64_t step,
                     std::int64_t steps) {
  if (step < schedule.warmup)
    return lr * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup);
  if (schedule.kind == ScheduleKind::constant) return lr;
  const auto after = static_cast<double>(step - schedule.warmup);
  const auto length = static_cast<double>(std::max<std::int64_t>(steps - schedule.warmup, 1));
  const double progress = std::min(after / length, 1.0);
  const double share = schedule.kind == ScheduleKind::linear
                           ? 1 - progress
                           : (1 + std::cos(std::numbers::pi * progress)) / 2;
  return lr * (schedule.floor + (1 - schedule.floor) * share);
}

}  // namespace qkv
