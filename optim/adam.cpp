#include "optim/adam.h"

#include <cmath>

namespace qkv {

void Adam::update(const Section& section, double learning_rate, std::int64_t step) const {
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
    const auto shrinkage = static_cast<T>(decoupled ? 1 - learning_rate * section.weight_decay : 1);
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

}  // namespace qkv
