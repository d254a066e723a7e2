#include "optim/adagrad.h"

#include <cmath>

namespace qkv {

void Adagrad::update(const Section& section, double learning_rate, std::int64_t) const {
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

}  // namespace qkv
