#include "layers/initialise.h"

#include <cmath>

#include "core/creation.h"

namespace qkv {

using detail::generated;

namespace {

Tensor uniform_within(double bound, const Shape& shape, const Random& random) {
  return generated(shape, DType::float32,
                   [&](std::uint64_t i) { return bound * (2 * random.uniform(i) - 1); });
}

}  // namespace

Initialiser xavier_uniform() {
  return [](const Shape& shape, const Random& random) {
    return uniform_within(std::sqrt(6.0 / static_cast<double>(shape[1] + shape[0])), shape, random);
  };
}

Initialiser kaiming_uniform() {
  return [](const Shape& shape, const Random& random) {
    const Index fan_in = shape.size() / shape[0];
    return uniform_within(std::sqrt(6.0 / static_cast<double>(fan_in)), shape, random);
  };
}

Initialiser uniform(double bound) {
  return [bound](const Shape& shape, const Random& random) {
    return uniform_within(bound, shape, random);
  };
}

Initialiser normal(double std) {
  return [std](const Shape& shape, const Random& random) {
    return generated(shape, DType::float32,
                     [&](std::uint64_t i) { return std * random.normal(i); });
  };
}

Tensor identity(Index size) {
  std::vector<double> values(static_cast<std::size_t>(size * size));
  for (Index i = 0; i < size; ++i) values[static_cast<std::size_t>(i * (size + 1))] = 1;
  return Tensor::from(values, {size, size});
}

}  // namespace qkv
