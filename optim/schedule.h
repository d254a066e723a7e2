#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "optim/options.h"

namespace qkv {

// clang-format off
/// The learning rate of update `step` of `steps`: a pure function, so that a resume needs no state.
/// While step < warmup it rises linearly, lr (step + 1) / warmup. After it, with
/// p = (step - warmup) / (steps - warmup):
///
///     constant      lr
///     linear        lr (floor + (1 - floor) (1 - p))
///     cosine        lr (floor + (1 - floor) (1 + cos(pi p)) / 2)
///                   (Loshchilov & Hutter 2017, "SGDR")
///     inverse_sqrt  lr sqrt(max(warmup, 1) / (step + 1))
///                   (Vaswani et al. 2017, 5.3, whose rate has lr = 1 / sqrt(width warmup))
///     one_cycle     half a cosine from lr / 25 up to lr at the last step of the warm-up, half a
///                   cosine down to lr floor at the last step (Smith & Topin 2018,
///                   "Super-Convergence", as PyTorch's OneCycleLR)
// clang-format on
double learning_rate(const ScheduleOptions& schedule, double lr, std::int64_t step,
                     std::int64_t steps);

/// A kind of schedule.
struct ScheduleRow {
  ScheduleKind value;
  std::string_view name, help;
  /// The rate as a fraction of its largest value.
  double (*fraction)(const ScheduleOptions& schedule, std::int64_t step, std::int64_t steps);
  bool floor = false;  ///< reads ScheduleOptions::floor
};
std::span<const ScheduleRow> schedule_kinds();

}  // namespace qkv
