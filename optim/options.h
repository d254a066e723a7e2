#pragma once

#include <cstdint>

#include "core/kinds.h"

namespace qkv {

/// See optim/optimizer.h.
enum class OptimizerKind { sgd, adam, adamw, rmsprop, adagrad, muon };

/// The configuration file's [optimizer]. Which kinds read an option: the table in
/// optim/optimizer.cpp.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adam;
  double lr = 1e-3;       ///< learning rate of training, before the schedule
  double momentum = 0.0;  ///< decay of the velocity
  bool nesterov = false;  ///< take the gradient's step ahead of the velocity's
  double beta1 = 0.9;     ///< decay of the mean of gradients
  double beta2 = 0.999;   ///< decay of the mean of squared gradients; PyTorch's RMSprop calls it
                          ///< alpha, 0.99 by default
  bool amsgrad = false;   ///< divide by the largest mean of squared gradients so far
  double epsilon = 1e-8;  ///< keeps the division finite; added to the square root, as in PyTorch,
                          ///< whose Adagrad has 1e-10 by default
  double weight_decay = 0.0;  ///< adamw: decoupled; the others: added to the gradient (L2). See
                              ///< `decays` for the parameters that it spares; PyTorch's spares
                              ///< none, and its AdamW has 0.01 by default
  bool require_gradients = false;  ///< a parameter without a gradient is an error; else it stays
                                   ///< as it is

  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

/// See optim/schedule.h.
enum class ScheduleKind { constant, linear, cosine, inverse_sqrt, one_cycle };

/// How the learning rate changes over the steps; the configuration file's [schedule].
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  std::int64_t warmup = 0;  ///< steps over which the rate rises to optimizer.lr
  double floor = 0.0;       ///< final fraction of optimizer.lr; see ScheduleRow::floor

  friend bool operator==(const ScheduleOptions&, const ScheduleOptions&) = default;
};

}  // namespace qkv
