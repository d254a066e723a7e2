#include "tests/ops/formulas.h"

#include <numbers>
#include <numeric>

namespace qkv::fuzz {

Array swapped(const Array& x, std::size_t first, std::size_t second) {
  std::vector<std::size_t> order(x.dimension());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::swap(order[first], order[second]);
  return xt::transpose(x, order);
}

Array sliced(const Array& x, std::size_t axis, Index begin, Index end, Index step) {
  Sizes sizes = x.shape();
  sizes[axis] = static_cast<std::size_t>((end - begin + step - 1) / step);
  if (x.size() == 0) return Array(sizes);  // of which a view would compute addresses
  xt::xstrided_slice_vector slices(x.dimension(), xt::all());
  slices[axis] = xt::range(begin, end, step);
  return xt::strided_view(x, slices);
}

void place(Array& y, std::size_t axis, Index begin, const Array& x) {
  if (x.size() == 0) return;
  xt::xstrided_slice_vector slices(x.dimension(), xt::all());
  slices[axis] = xt::range(begin, begin + static_cast<Index>(x.shape(axis)));
  // As C++20, xtensor 0.24 allocates wrongly where it assigns to this view.
  std::copy(x.begin(), x.end(), xt::strided_view(y, slices).begin());
}

Array concatenated(const Arrays& parts, std::size_t axis) {
  Sizes sizes = parts[0].shape();
  sizes[axis] = 0;
  for (const Array& x : parts) sizes[axis] += x.shape(axis);
  Array y(sizes);
  Index begin = 0;
  for (const Array& x : parts) {
    place(y, axis, begin, x);
    begin += static_cast<Index>(x.shape(axis));
  }
  return y;
}

Array with_joined(const Array& x, const std::vector<std::size_t>& axes) {
  std::vector<std::size_t> order;
  Sizes sizes;
  for (std::size_t axis = 0; axis < x.dimension(); ++axis) {
    if (std::ranges::find(axes, axis) != axes.end()) continue;
    order.push_back(axis);
    sizes.push_back(x.shape(axis));
  }
  sizes.push_back(1);
  for (const std::size_t axis : axes) {
    order.push_back(axis);
    sizes.back() *= x.shape(axis);
  }
  Array y = xt::transpose(x, order);
  y.reshape(sizes);
  return y;
}

Sizes with_last(Sizes sizes, std::size_t size) {
  sizes.back() = size;
  return sizes;
}

Array linear(const Array& x, const Array& weight, const Array* bias) {
  const std::size_t out = weight.shape(0);
  Array y(with_last(x.shape(), out));
  for (std::size_t i = 0; i < y.size(); ++i)
    y.flat(i) = dot(row_of(x, i / out), row_of(weight, i % out), dtype_of(x));
  if (bias) y = y + *bias;
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

Scalar silu(const Scalar& x) {
  const Number share = sigmoid(x.number);
  const Number one = number(1, x);
  Number y = x.number * share;
  const bool infinite = !x.number.finite();
  y.unsure = y.unsure || x.value() == -std::numeric_limits<Real>::infinity();
  Number derivative = share * (one + x.number * (one - share));
  derivative.unsure = derivative.unsure || infinite;
  // x (1 - share) overflows nowhere, but its parts may for large |x|.
  return function_of(y, {{x, derivative}});
}

Scalar dropped(const Scalar& x, std::size_t i, double probability) {
  const bool kept = dropout_random.bits(i) >= std::ceil(probability * 0x1p32);
  return kept ? x * constant_like(1 / (1 - Real{probability}), x) : 0 * x;
}

}  // namespace qkv::fuzz
