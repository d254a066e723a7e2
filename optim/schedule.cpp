#include <algorithm>
#include <cmath>
#include <numbers>

#include "optim/optimizer.h"

namespace qkv {

namespace {

/// From `from` at 0 to `to` at 1 along half a cosine; stays at `to` afterwards.
double half_cosine(double from, double to, double progress) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * std::min(progress, 1.0))) / 2;
}

/// a / b, b being at least 1.
double ratio(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) / static_cast<double>(std::max<std::int64_t>(b, 1));
}

double one_cycle_share(const ScheduleOptions& schedule, std::int64_t step, std::int64_t steps) {
  constexpr double start = 1.0 / 25;
  const std::int64_t top = std::max<std::int64_t>(schedule.warmup - 1, 0);
  return step < top ? half_cosine(start, 1, ratio(step, top))
                    : half_cosine(1, schedule.floor, ratio(step - top, steps - 1 - top));
}

/// The rate as a share of its largest value.
double share_of(const ScheduleOptions& schedule, std::int64_t step, std::int64_t steps) {
  if (schedule.kind == ScheduleKind::one_cycle) return one_cycle_share(schedule, step, steps);
  if (step < schedule.warmup) return ratio(step + 1, schedule.warmup);
  const double progress = std::min(ratio(step - schedule.warmup, steps - schedule.warmup), 1.0);
  switch (schedule.kind) {
    case ScheduleKind::linear:
      return schedule.floor + (1 - schedule.floor) * (1 - progress);
    case ScheduleKind::cosine:
      return half_cosine(1, schedule.floor, progress);
    case ScheduleKind::inverse_sqrt:
      return std::sqrt(ratio(std::max<std::int64_t>(schedule.warmup, 1), step + 1));
    default:
      return 1;
  }
}

}  // namespace

double learning_rate(const ScheduleOptions& schedule, double lr, std::int64_t step,
                     std::int64_t steps) {
  return lr * share_of(schedule, step, steps);
}

}  // namespace qkv
