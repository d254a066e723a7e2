#pragma once

#include "optim/optimizer.h"

namespace qkv {

/// Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019, "Decoupled Weight Decay
/// Regularization"):
///
///     m = beta1 m + (1 - beta1) g
///     v = beta2 v + (1 - beta2) g^2
///     value -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
///
/// Weight decay adds weight_decay value to g (Adam) or subtracts lr weight_decay value from the
/// value first (AdamW). With `amsgrad` the largest v so far replaces v (Reddi et al. 2018, "On the
/// Convergence of Adam and Beyond", with PyTorch's bias correction).
class Adam : public Optimizer {
 public:
  explicit Adam(const OptimizerOptions& options)
      : Optimizer(options, options.amsgrad
                               ? std::vector<std::string>{"first_moment", "second_moment",
                                                          "max_second_moment"}
                               : std::vector<std::string>{"first_moment", "second_moment"}) {}

 protected:
  void update(const Section& section, double learning_rate, std::int64_t step) const override;
};

}  // namespace qkv
