#include "tests/core/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace qkv::tests::reference {
namespace {

Sizes reduced(const Array& x, const Sizes& axes, bool keep) {
  Sizes sizes;
  for (std::size_t axis = 0; axis < x.dimension(); ++axis) {
    const bool reduce = std::ranges::find(axes, axis) != axes.end();
    if (!reduce) sizes.push_back(x.shape(axis));
    if (reduce && keep) sizes.push_back(1);
  }
  return sizes;
}

/// `reduce(x, axes)` with the axes removed or kept; `neutral` where there is nothing to reduce.
template <class Reduce>
Array reduction(const Array& x, const Sizes& axes, bool keep, double neutral, Reduce reduce) {
  if (x.size() == 0) return filled(reduced(x, axes, keep), neutral);
  if (axes.empty()) return x;
  const Array y = reduce(x, axes);
  return reshaped(y, reduced(x, axes, keep));
}

}  // namespace

const Oracles& oracles() {
  static const Oracles all = [] {
    Oracles joined;
    for (const auto* family : {&elementwise_oracles(), &shape_oracles(), &reduction_oracles(),
                               &layer_oracles(), &recurrent_oracles(), &loss_oracles()})
      joined.insert(family->begin(), family->end());
    return joined;
  }();
  return all;
}

Sizes sizes_of(const Array& x) {
  return {x.shape().begin(), x.shape().end()};
}

Array filled(const Sizes& sizes, double value) {
  Array y = Array::from_shape(sizes);
  y.fill(value);
  return y;
}

Array reshaped(Array x, const Sizes& sizes) {
  x.reshape(sizes);
  return x;
}

Array permuted(const Array& x, const Sizes& axes) {
  Sizes sizes;
  for (const std::size_t axis : axes) sizes.push_back(x.shape(axis));
  if (x.size() == 0) return filled(sizes, 0);
  return xt::transpose(x, axes);
}

Array part(const Array& x, std::size_t axis, int begin, int end, int step) {
  Sizes sizes = sizes_of(x);
  sizes[axis] = static_cast<std::size_t>((end - begin + step - 1) / step);
  const auto first = static_cast<std::size_t>(begin), by = static_cast<std::size_t>(step);
  return computed(sizes, [&](auto position) {
    position[axis] = first + position[axis] * by;
    return x.element(position.begin(), position.end());
  });
}

Sizes all_axes(const Array& x) {
  Sizes axes(x.dimension());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Array sum_over(const Array& x, const Sizes& axes, bool keep) {
  return reduction(x, axes, keep, 0,
                   [](const Array& y, const Sizes& along) -> Array { return xt::sum(y, along); });
}

Array mean_over(const Array& x, const Sizes& axes, bool keep) {
  double count = 1;
  for (const std::size_t axis : axes) count *= static_cast<double>(x.shape(axis));
  return sum_over(x, axes, keep) / count;
}

Array max_over(const Array& x, const Sizes& axes, bool keep) {
  constexpr double least = -std::numeric_limits<double>::infinity();
  return reduction(x, axes, keep, least,
                   [](const Array& y, const Sizes& along) -> Array { return xt::amax(y, along); });
}

Array min_over(const Array& x, const Sizes& axes, bool keep) {
  return -max_over(-x, axes, keep);
}

Array sigmoid(const Array& x) {
  return 1 / (1 + xt::exp(-x));
}

Array softplus(const Array& x) {
  return xt::log1p(xt::exp(x));
}

Array gelu(const Array& x) {
  return 0.5 * x * (1 + xt::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * xt::pow(x, 3))));
}

Array log_softmax(const Array& x, std::size_t axis) {
  const Array shifted = x - max_over(x, {axis}, true);
  const Array sums = sum_over(xt::exp(shifted), {axis}, true);
  return shifted - xt::log(sums);
}

Array product(const Array& a, const Array& b) {
  const Array rows = xt::expand_dims(a, a.dimension());         // [..., M, K, 1]
  const Array columns = xt::expand_dims(b, b.dimension() - 2);  // [..., 1, K, N]
  const Array products = rows * columns;
  return sum_over(products, {products.dimension() - 2});
}

Array transposed(const Array& x) {
  Sizes axes = all_axes(x);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return permuted(x, axes);
}

}  // namespace qkv::tests::reference
