#pragma once

#include <algorithm>
#include <limits>

#include "core/kernels/math.h"
#include "core/kernels/vector.h"

/// Loops over rows of adjacent elements, a vector at a time. Their body is a function of `at`:
/// `at(x)` loads the current vector of the row x, as in `at(x) * at(y)`. Sums have one accumulator
/// for each lane of a vector, and these are combined at the end: the order is fixed.
namespace qkv::kernels {

/// Reduces f(x[i], ...) over i by `join`, whose neutral element is `start`.
template <class T, class F, class Join>
T reduce_row(Index n, T start, F f, Join join) {
  Vector<T> lanes = broadcast(start);
  Index i = 0;
  for (; i + width<T> <= n; i += width<T>)
    lanes = join(lanes, f([i](const T* x) { return load(x + i); }));
  if (i < n) {
    const Vector<T> rest = f([i, n](const T* x) { return load_part(x + i, n - i); });
    lanes = join(lanes, keep_part<T>(rest, n - i, start));
  }
  return fold<T>(lanes, join);
}

template <class T, class F>
T sum_row(Index n, F f) {
  return reduce_row(n, T{0}, f, [](const auto& a, const auto& b) { return a + b; });
}

template <class T>
T max_row(const T* x, Index n) {
  return reduce_row(
      n, -std::numeric_limits<T>::infinity(), [x](auto at) { return at(x); },
      [](const auto& a, const auto& b) { return a < b ? b : a; });
}

/// Calls f(at, put) for each vector, where `put(y, v)` stores v to the current vector of the row y.
template <class T, class F>
void for_row(Index n, F f) {
  Index i = 0;
  for (; i + width<T> <= n; i += width<T>)
    f([i](const T* x) { return load(x + i); },
      [i](T* y, const Vector<T>& v) { store<T>(y + i, v); });
  if (i < n)
    f([i, n](const T* x) { return load_part(x + i, n - i); },
      [i, n](T* y, const Vector<T>& v) { store_part<T>(y + i, v, n - i); });
}

/// y[i] = f(x[i], ...)
template <class T, class F>
void map_row(Index n, T* y, F f) {
  for_row<T>(n, [=](auto at, auto put) { put(y, f(at)); });
}

/// Normaliser of a row: its softmax is exp(x - max) / sum. max is 0 where no element exceeds -inf.
template <class T>
struct Normaliser {
  T max, sum;

  /// -log softmax(x), for an element x of the row. The large terms cancel first.
  double negative_log(T x) const {
    return static_cast<double>(max) - static_cast<double>(x) + std::log(static_cast<double>(sum));
  }
};

/// Writes elements [i, width) of a row: `rest`, which is zero from element `n` on, then zeros.
template <class T>
void end_row(T* y, Index i, Index n, const Vector<T>& rest, Index width) {
  if (i < n && i + kernels::width<T> <= width) {
    store<T>(y + i, rest);
    i += kernels::width<T>;
  } else if (i < n) {
    store_part<T>(y + i, rest, width - i);
    return;
  }
  std::fill(y + i, y + width, T{0});
}

/// Estimated operations per element of a softmax.
inline constexpr Index softmax_cost = 20;

/// y = softmax of the first `n` of `width` elements, then zeros. All zeros if all n are -inf; NaN
/// and +inf give NaN.
template <class T>
Normaliser<T> softmax_row(const T* x, T* y, Index n, Index width) {
  T max = max_row(x, n);
  if (max == -std::numeric_limits<T>::infinity()) max = 0;
  Vector<T> sums = {}, rest = {};
  Index whole = 0;
  for (; whole + kernels::width<T> <= n; whole += kernels::width<T>) {
    const Vector<T> power = math::exp(load(x + whole) - max);
    store<T>(y + whole, power);
    sums += power;
  }
  if (whole < n) {
    rest = keep_part<T>(math::exp(load_part(x + whole, n - whole) - max), n - whole, 0);
    sums += rest;
  }
  const T sum = fold<T>(sums, [](const auto& a, const auto& b) { return a + b; });
  const T factor = sum == 0 ? T{0} : 1 / sum;
  map_row(whole, y, [=](auto at) { return at(y) * factor; });
  end_row<T>(y, whole, n, keep_part<T>(rest * factor, n - whole, 0), width);
  return {max, sum};
}

/// dx = y (dy - sum(dy y)), the derivative of y = softmax(x), for the first `n` elements.
template <class T>
void softmax_row_backward(const T* y, const T* dy, T* dx, Index n) {
  const T dot = sum_row<T>(n, [=](auto at) { return at(dy) * at(y); });
  map_row(n, dx, [=](auto at) { return at(y) * (at(dy) - dot); });
}

}  // namespace qkv::kernels
