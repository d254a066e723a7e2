#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "core/kernels/math.h"
#include "core/shape.h"

/// Reductions over a row of adjacent numbers. Each is taken in `lanes` interleaved parts that are
/// joined at the end: the order is fixed, and the compiler may vectorise it without being allowed
/// to reorder sums.
namespace qkv::kernels {

constexpr Index lanes = 16;

/// join over i of f(i), starting from `start`.
template <class T, class F, class Join>
T reduce_row(Index n, T start, F f, Join join) {
  std::array<T, lanes> parts;
  parts.fill(start);
  Index i = 0;
  for (; i + lanes <= n; i += lanes)
    for (Index lane = 0; lane < lanes; ++lane) {
      auto& part = parts[static_cast<std::size_t>(lane)];
      part = join(part, f(i + lane));
    }
  T result = start;
  for (; i < n; ++i) result = join(result, f(i));
  if (n < lanes) return result;
  for (std::size_t half = lanes / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane)
      parts[lane] = join(parts[lane], parts[lane + half]);
  return join(result, parts[0]);
}

template <class T, class F>
T sum_row(Index n, F f) {
  return reduce_row(n, T{0}, f, [](T a, T b) { return a + b; });
}

template <class T>
T max_row(const T* x, Index n) {
  return reduce_row(
      n, -std::numeric_limits<T>::infinity(), [=](Index i) { return x[i]; },
      [](T a, T b) { return a < b ? b : a; });
}

/// What the exponentials of a row were divided by: exp(x - max) / sum is its softmax.
template <class T>
struct Normaliser {
  T max, sum;

  T log_sum() const { return max + std::log(sum); }
};

/// y = softmax of the first `n` of `width` numbers, zeros after them and where all are -inf.
template <class T>
Normaliser<T> softmax_row(const T* x, T* y, Index n, Index width) {
  const T max = max_row(x, n);
  if (max == -std::numeric_limits<T>::infinity()) n = 0;
  for (Index i = 0; i < n; ++i) y[i] = math::exp(x[i] - max);
  const T sum = sum_row<T>(n, [=](Index i) { return y[i]; });
  const T factor = 1 / sum;
  for (Index i = 0; i < n; ++i) y[i] *= factor;
  std::fill(y + n, y + width, T{0});
  return {max, sum};
}

/// dx = scale y (dy - sum(dy y)), the derivative of y = softmax(x), for the first `n` numbers.
template <class T>
void softmax_row_backward(const T* y, const T* dy, T* dx, Index n, T scale) {
  const T dot = sum_row<T>(n, [=](Index i) { return dy[i] * y[i]; });
  for (Index i = 0; i < n; ++i) dx[i] = scale * y[i] * (dy[i] - dot);
}

}  // namespace qkv::kernels
