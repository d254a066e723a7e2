#include "core/creation.h"

#include "core/ops.h"

namespace qkv {

using detail::generated;

Tensor zeros_like(const Tensor& x) {
  return Tensor::zeros(x.shape(), x.dtype());
}

Tensor ones_like(const Tensor& x) {
  return Tensor::full(x.shape(), 1, x.dtype());
}

Tensor arange(Index size, DType dtype) {
  return generated({size}, dtype, [](std::uint64_t i) { return static_cast<double>(i); });
}

Tensor rand(const Shape& shape, const Random& random, DType dtype) {
  return generated(shape, dtype, [&](std::uint64_t i) { return random.uniform(i); });
}

Tensor randn(const Shape& shape, const Random& random, DType dtype) {
  return generated(shape, dtype, [&](std::uint64_t i) { return random.normal(i); });
}

Tensor tril(const Tensor& x) {
  require(x.rank() >= 2, "[tril] needs two axes or more, got shape {}", x.shape());
  const Index rows = x.dim(-2), columns = x.dim(-1);
  const Tensor below = generated({rows, columns}, x.dtype(), [&](std::uint64_t i) {
    const auto at = static_cast<Index>(i);
    return at % columns <= at / columns ? 1.0 : 0.0;
  });
  return where(below, x, Tensor::scalar(0, x.dtype()));
}

}  // namespace qkv
