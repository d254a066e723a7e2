#include "optim/rmsprop.h"

#include <cmath>

namespace qkv {

void RmsProp::update(const Section& section, double learning_rate, std::int64_t) const {
  dispatch(section.gradient.dtype(), [&]<class T>() {
    const auto decay = static_cast<T>(section.weight_decay),
               momentum = static_cast<T>(options_.momentum), rate = static_cast<T>(learning_rate),
               beta = static_cast<T>(options_.beta2), rest = static_cast<T>(1 - options_.beta2),
               epsilon = static_cast<T>(options_.epsilon);
    const auto scaled = [=](T value, T g, T& v) {
      g += decay * value;
      v = beta * v + rest * g * g;
      return g / (std::sqrt(v) + epsilon);
    };
    if (section.slots.size() == 1)
      return for_each_element<T, 1>(
          section, [=](T& value, T g, T& v) { value -= rate * scaled(value, g, v); });
    for_each_element<T, 2>(section, [=](T& value, T g, T& v, T& m) {
      m = momentum * m + scaled(value, g, v);
      value -= rate * m;
    });
  });
}

}  // namespace qkv
