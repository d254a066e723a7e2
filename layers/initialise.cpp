#include "layers/initialise.h"

#include <cmath>

#include "core/creation.h"

namespace qkv {

using detail::generated;

Tensor xavier_uniform(Index out, Index in, const Random& random) {
  return uniform({out, in}, std::sqrt(6.0 / static_cast<double>(in + out)), random);
}

Tensor kaiming_uniform(const Shape& shape, const Random& random) {
  const Index fan_in = shape.size() / shape[0];
  return uniform(shape, std::sqrt(6.0 / static_cast<double>(fan_in)), random);
}

Tensor uniform(const Shape& shape, double bound, const Random& random) {
  return generated(shape, DType::float32,
                   [&](std::uint64_t i) { return bound * (2 * random.uniform(i) - 1); });
}

Tensor truncated_normal(const Shape& shape, double std, const Random& random) {
  return generated(shape, DType::float32, [&](std::uint64_t i) {
    std::uint64_t attempt = i;
    while (std::abs(random.normal(attempt)) > 2)
      attempt += static_cast<std::uint64_t>(shape.size());
    return std * random.normal(attempt);
  });
}

Tensor normal(const Shape& shape, double std, const Random& random) {
  return generated(shape, DType::float32, [&](std::uint64_t i) { return std * random.normal(i); });
}

Tensor identity(Index size) {
  std::vector<double> values(static_cast<std::size_t>(size * size));
  for (Index i = 0; i < size; ++i) values[static_cast<std::size_t>(i * (size + 1))] = 1;
  return Tensor::from(values, {size, size});
}

}  // namespace qkv
