#pragma once

#include "optim/optimizer.h"

namespace qkv {

/// Stochastic gradient descent with momentum (Polyak 1964) and Nesterov's (Sutskever et al. 2013)
/// as PyTorch writes it:
///
///     g = gradient + weight_decay value
///     m = momentum m + g
///     value -= lr m
///     value -= lr (g + momentum m), with Nesterov's
class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerOptions& options)
      : Optimizer(options, options.momentum > 0 ? std::vector<std::string>{"momentum"}
                                                : std::vector<std::string>{}) {}

 private:
  void update(const Section& section, double learning_rate, std::int64_t step) const override;
};

}  // namespace qkv
