#pragma once

#include <cmath>

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
  void update(const Section& section, double learning_rate, std::int64_t) const override {
    dispatch(section.gradient.dtype(), [&]<class T>() {
      const auto decay = static_cast<T>(section.weight_decay), rate = static_cast<T>(learning_rate),
                 epsilon = static_cast<T>(options_.epsilon);
      for_each_element<T, 1>(section, [=](T& value, T g, T& s) {
        g += decay * value;
        s += g * g;
        value -= rate * g / (std::sqrt(s) + epsilon);
      });
    });
  }
};

}  // namespace qkv
