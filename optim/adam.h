#pragma once

#include <cmath>

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
  void update(const Section& section, double learning_rate, std::int64_t step) const override {
    const double t = static_cast<double>(step + 1);
    const bool decoupled = options_.kind != OptimizerKind::adam;
    dispatch(section.gradient.dtype(), [&]<class T>() {
      const auto beta1 = static_cast<T>(options_.beta1), beta2 = static_cast<T>(options_.beta2);
      // Subtracted in float64: float32's 1 - 0.999f is off by 7e-6.
      const auto rest1 = static_cast<T>(1 - options_.beta1),
                 rest2 = static_cast<T>(1 - options_.beta2);
      const auto epsilon = static_cast<T>(options_.epsilon);
      const auto rate = static_cast<T>(learning_rate / (1 - std::pow(options_.beta1, t)));
      const auto correction = static_cast<T>(1 / std::sqrt(1 - std::pow(options_.beta2, t)));
      const auto coupled_decay = static_cast<T>(decoupled ? 0 : section.weight_decay);
      const auto shrinkage =
          static_cast<T>(decoupled ? 1 - learning_rate * section.weight_decay : 1);
      const auto moments = [=](T value, T g, T& m, T& v) {
        g += coupled_decay * value;
        m = beta1 * m + rest1 * g;
        v = beta2 * v + rest2 * g * g;
      };
      const auto updated = [=](T value, T m, T v) {
        return shrinkage * value - rate * m / (std::sqrt(v) * correction + epsilon);
      };
      if (options_.amsgrad)
        return for_each_element<T, 3>(section, [=](T& value, T g, T& m, T& v, T& largest) {
          moments(value, g, m, v);
          largest = v < largest ? largest : v;
          value = updated(value, m, largest);
        });
      for_each_element<T, 2>(section, [=](T& value, T g, T& m, T& v) {
        moments(value, g, m, v);
        value = updated(value, m, v);
      });
    });
  }
};

}  // namespace qkv
