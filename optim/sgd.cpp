#include "optim/sgd.h"

namespace qkv {

void Sgd::update(const Section& section, double learning_rate, std::int64_t) const {
  dispatch(section.gradient.dtype(), [&]<class T>() {
    const auto decay = static_cast<T>(section.weight_decay),
               momentum = static_cast<T>(options_.momentum), rate = static_cast<T>(learning_rate);
    if (section.slots.empty())
      return for_each_element<T, 0>(section,
                                    [=](T& value, T g) { value -= rate * (g + decay * value); });
    const auto gradient_factor = static_cast<T>(options_.nesterov ? 1 : 0),
               momentum_factor = options_.nesterov ? momentum : T{1};
    for_each_element<T, 1>(section, [=](T& value, T g, T& m) {
      g += decay * value;
      m = momentum * m + g;
      value -= rate * (gradient_factor * g + momentum_factor * m);
    });
  });
}

}  // namespace qkv
