#include "tests/ops/formulas.h"

#include <numbers>

namespace qkv::fuzz {

Index broadcast_position(const Shape& shape, const Shape& to, Index i) {
  Index position = 0, step = 1;
  for (int axis = 1; axis <= to.rank(); ++axis) {
    const Index size = to[to.rank() - axis];
    if (axis <= shape.rank()) {
      const Index own = shape[shape.rank() - axis];
      if (own != 1) position += i % size * step;
      step *= own;
    }
    i /= size;
  }
  return position;
}

Array broadcast_to(const Array& x, const Shape& shape) {
  Array y{shape, {}};
  for (Index i = 0; i < shape.size(); ++i)
    y.scalars.push_back(x[broadcast_position(x.shape, shape, i)]);
  return y;
}

std::vector<std::vector<Index>> columns(const Shape& shape,
                                        const std::array<bool, Shape::max_rank>& reduced) {
  const Shape kept = reduced_shape(shape, reduced, true);
  std::vector<std::vector<Index>> result(static_cast<std::size_t>(kept.size()));
  for (Index i = 0; i < shape.size(); ++i)
    result[static_cast<std::size_t>(broadcast_position(kept, shape, i))].push_back(i);
  return result;
}

Shape reduced_shape(const Shape& shape, const std::array<bool, Shape::max_rank>& reduced,
                    bool keep) {
  std::vector<Index> sizes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!reduced[static_cast<std::size_t>(axis)])
      sizes.push_back(shape[axis]);
    else if (keep)
      sizes.push_back(1);
  }
  return Shape(sizes);
}

std::vector<Scalar> at(const Array& x, std::span<const Index> positions) {
  std::vector<Scalar> found;
  for (const Index i : positions) found.push_back(x[i]);
  return found;
}

Shape with_last(const Shape& shape, Index size) {
  std::vector<Index> sizes(shape.begin(), shape.end());
  sizes.back() = size;
  return Shape(sizes);
}

Array linear(const Array& x, const Array& weight, const Array* bias) {
  const Index in = weight.shape[1], out = weight.shape[0];
  Array y{with_last(x.shape, out), {}};
  const Index rows = out ? y.size() / out : 0;
  const DType dtype = dtype_in({x, weight});
  for (Index r = 0; r < rows; ++r)
    for (Index o = 0; o < out; ++o) {
      const Scalar product = dot(row(x, r, in), row(weight, o, in), dtype);
      y.scalars.push_back(bias ? product + (*bias)[o] : product);
    }
  return y;
}

Scalar gelu(const Scalar& x) {
  const Real c = std::sqrt(2 / std::numbers::pi_v<Real>), v = x.value();
  const Real t = std::tanh(c * (v + 0.044715L * v * v * v)), size = std::fabs(v);
  // Beyond 20 it is 0 or x; between, 1 + tanh cancels.
  const bool far = size > 20;
  const Real tiny = 1e-30L / x.number.format().unit;
  const Real slope =
      far ? (v > 0 ? 1 : 0) : (1 + t) / 2 + v / 2 * (1 - t * t) * c * (1 + 3 * 0.044715L * v * v);
  Number y = rounded(far ? std::max<Real>(v, 0) : v / 2 * (1 + t),
                     times(x.number.error, std::fabs(slope) + 1) + (far ? tiny : 4 * size),
                     x.dtype(), x.number.unsure || v == -std::numeric_limits<Real>::infinity());
  if (std::isnan(v)) y.value = v;
  const Number derivative = rounded(slope, far ? tiny : 8 * (1 + size) + 2 * x.number.error,
                                    x.dtype(), x.number.unsure || !x.number.finite());
  return function_of(y, {{x, derivative}});
}

Scalar dropped(const Scalar& x, Index i, double probability) {
  const bool kept =
      dropout_random.bits(static_cast<std::uint64_t>(i)) >= std::ceil(probability * 0x1p32);
  return kept ? x * constant_like(1 / (1 - Real{probability}), x) : 0 * x;
}

}  // namespace qkv::fuzz
