#pragma once

#include <cstdint>

namespace qkv {

enum class OptimizerKind { sgd, adam, adamw };

/// The configuration file's [optimizer].
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adam;
  double lr = 1e-3;           ///< learning rate
  double momentum = 0.0;      ///< sgd
  double beta1 = 0.9;         ///< adam: decay of the mean of gradients
  double beta2 = 0.999;       ///< adam: decay of the mean of squared gradients
  double epsilon = 1e-8;      ///< adam
  double weight_decay = 0.0;  ///< sgd and adam: added to the gradient (L2); adamw: decoupled

  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

enum class ScheduleKind { constant, linear, cosine };

/// How the learning rate changes over the steps; the configuration file's [schedule].
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  std::int64_t warmup = 0;  ///< steps over which the rate rises linearly to optimizer.lr
  double floor = 0.0;       ///< linear and cosine end at this share of optimizer.lr

  friend bool operator==(const ScheduleOptions&, const ScheduleOptions&) = default;
};

}  // namespace qkv
