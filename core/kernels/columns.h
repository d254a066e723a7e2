#pragma once

#include <algorithm>
#include <limits>

#include "core/kernels/math.h"
#include "core/kernels/vector.h"

/// Softmax down the columns of a matrix whose rows hold whole vectors: side by side, columns need
/// no sums across a vector, and each is summed in the order of its rows.
namespace qkv::kernels {

/// A matrix [rows x columns] without gaps, in which column c is only as long as `lengths[c]`,
/// lengths that never fall. `columns` is a multiple of `width<T>`.
template <class T>
struct Columns {
  T* data;
  Index rows, columns;
  const T* lengths;

  /// Calls `f(numbers, seen)` for what each row holds of the vector of columns from `c` on, where
  /// `seen(v, rest)` puts `rest` in place of what lies beyond a column's end.
  template <class F>
  void for_each(Index c, F f) const {
    const auto whole = static_cast<Index>(lengths[c]);
    T* at = data + c;
    for (Index row = 0; row < std::min(whole, rows); ++row, at += columns)
      f(at, [](const Vector<T>& v, T) { return v; });
    const Vector<T> ends = load(lengths + c);
    for (Index row = whole; row < rows; ++row, at += columns)
      f(at, [&](const Vector<T>& v, T rest) {
        return static_cast<T>(row) < ends ? v : broadcast(rest);
      });
  }
};

/// Each column becomes its softmax, zeros beyond its end. `max` and `sum` receive for each column
/// what its exponentials were divided by: softmax(x) = exp(x - max) / sum.
template <class T>
void softmax_columns(const Columns<T>& x, T* max, T* sum) {
  for (Index c = 0; c < x.columns; c += width<T>) {
    Vector<T> most = broadcast(-std::numeric_limits<T>::infinity()), total = {};
    x.for_each(c, [&](const T* at, auto seen) {
      const Vector<T> v = seen(load(at), -std::numeric_limits<T>::infinity());
      most = most < v ? v : most;
    });
    x.for_each(c, [&](T* at, auto seen) {
      const Vector<T> power = seen(math::exp(load(at) - most), 0);
      store<T>(at, power);
      total += power;
    });
    const Vector<T> factor = total > 0 ? 1 / total : Vector<T>{};
    for (Index row = 0; row < x.rows; ++row) {
      T* at = x.data + row * x.columns + c;
      store<T>(at, load(at) * factor);
    }
    store<T>(max + c, most);
    store<T>(sum + c, total);
  }
}

/// From scores and what `softmax_columns` gave for them, the weights in place of the scores; in
/// `d`, in place of the gradient of the weights, that of the scores: w (d - sum(d w)).
template <class T>
void softmax_columns_again(const Columns<T>& x, T* d, const T* max, const T* sum) {
  for (Index c = 0; c < x.columns; c += width<T>) {
    const Vector<T> most = load(max + c), total = load(sum + c);
    const Vector<T> factor = total > 0 ? 1 / total : Vector<T>{};
    Vector<T> dots = {};
    x.for_each(c, [&](T* at, auto seen) {
      const Vector<T> weights = seen(math::exp(load(at) - most) * factor, 0);
      store<T>(at, weights);
      dots += weights * load(d + (at - x.data));
    });
    for (Index i = c; i < x.rows * x.columns; i += x.columns)
      store<T>(d + i, load(x.data + i) * (load(d + i) - dots));
  }
}

}  // namespace qkv::kernels
