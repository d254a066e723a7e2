#pragma once

#include "optim/optimizer.h"

namespace qkv {

/// Adagrad (Duchi et al. 2011, "Adaptive Subgradient Methods"):
///
///     s = s + g^2
///     value -= lr g / (sqrt(s) + epsilon)
class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const OptimizerOptions& options) : Optimizer(options, {"sum_of_squares"}) {}

 private:
  void update(const Section& section, double learning_rate, std::int64_t step) const override;
};

}  // namespace qkv
