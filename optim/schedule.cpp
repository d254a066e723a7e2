#include "optim/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

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

/// A linear warm-up, then `after(progress)` with the progress from 0 to 1.
template <class F>
double warmed_up(const ScheduleOptions& schedule, std::int64_t step, std::int64_t steps, F after) {
  if (step < schedule.warmup) return ratio(step + 1, schedule.warmup);
  return after(std::min(ratio(step - schedule.warmup, steps - schedule.warmup), 1.0));
}

double constant(const ScheduleOptions& schedule, std::int64_t step, std::int64_t steps) {
  return warmed_up(schedule, step, steps, [](double) { return 1.0; });
}

double linear(const ScheduleOptions& schedule, std::int64_t step, std::int64_t steps) {
  return warmed_up(schedule, step, steps, [&](double progress) {
    return schedule.floor + (1 - schedule.floor) * (1 - progress);
  });
}

double cosine(const ScheduleOptions& schedule, std::int64_t step, std::int64_t steps) {
  return warmed_up(schedule, step, steps,
                   [&](double progress) { return half_cosine(1, schedule.floor, progress); });
}

double inverse_sqrt(const ScheduleOptions& schedule, std::int64_t step, std::int64_t steps) {
  return warmed_up(schedule, step, steps, [&](double) {
    return std::sqrt(ratio(std::max<std::int64_t>(schedule.warmup, 1), step + 1));
  });
}

double one_cycle(const ScheduleOptions& schedule, std::int64_t step, std::int64_t steps) {
  constexpr double start = 1.0 / 25;
  const std::int64_t top = std::max<std::int64_t>(schedule.warmup - 1, 0);
  return step < top ? half_cosine(start, 1, ratio(step, top))
                    : half_cosine(1, schedule.floor, ratio(step - top, steps - 1 - top));
}

constexpr auto schedule_rows = std::to_array<ScheduleRow>({
    {ScheduleKind::constant, "constant", "no decay", constant},
    {ScheduleKind::linear, "linear", "a line to the floor", linear, true},
    {ScheduleKind::cosine, "cosine", "half a cosine to the floor", cosine, true},
    {ScheduleKind::inverse_sqrt, "inverse-sqrt", "1 / sqrt(step)", inverse_sqrt},
    {ScheduleKind::one_cycle, "one-cycle", "half a cosine up, one down", one_cycle, true},
});
static_assert(lists_every_kind(schedule_rows));

}  // namespace

double learning_rate(const ScheduleOptions& schedule, double lr, std::int64_t step,
                     std::int64_t steps) {
  return lr * row_of(schedule_rows, schedule.kind).fraction(schedule, step, steps);
}

std::span<const ScheduleRow> schedule_kinds() {
  return schedule_rows;
}

}  // namespace qkv
