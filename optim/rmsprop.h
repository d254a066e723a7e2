#pragma once

#include "optim/optimizer.h"

namespace qkv {

/// RMSprop (Hinton 2012, lecture 6e of "Neural Networks for Machine Learning"), with momentum as
/// PyTorch adds it:
///
///     v = beta2 v + (1 - beta2) g^2
///     m = momentum m + g / (sqrt(v) + epsilon)
///     value -= lr m
class RmsProp final : public Optimizer {
 public:
  explicit RmsProp(const OptimizerOptions& options)
      : Optimizer(options, options.momentum > 0
                               ? std::vector<std::string>{"second_moment", "momentum"}
                               : std::vector<std::string>{"second_moment"}) {}

 private:
  void update(const Section& section, double learning_rate, std::int64_t step) const override;
};

}  // namespace qkv
