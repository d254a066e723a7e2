#pragma once

#include <algorithm>
#include <limits>

#include "core/kernels/math.h"
#include "core/kernels/vector.h"

/// Softmax down the columns of a matrix, a vector of columns at a time: no sums across the lanes of
/// a vector, and each column is summed in the order of its rows.
namespace qkv::kernels {

/// A matrix [rows x columns] whose rows start `stride` elements apart and are padded to whole
/// vectors. Column c has `lengths[c]` elements, padding columns have none.
template <class T>
struct Columns {
  T* data;
  Index rows, stride, columns;
  const T* lengths;

  /// For the vector of columns that starts at `c`, calls `f(row, visible)` for each row up to the
  /// longest column's end. `row` points to the vector, and `visible(v, rest)` replaces by `rest`
  /// the lanes of v whose column ends before this row (a masked load).
  template <class F>
  void for_each(Index c, F f) const {
    const Vector<T> ends = load(lengths + c);
    const Index shortest = least(ends), longest = this->longest(c);
    T* at = data + c;
    Index row = 0;
    for (; row < std::min(shortest, longest); ++row, at += stride)
      f(at, [](const Vector<T>& v, T) { return v; });
    for (; row < longest; ++row, at += stride)
      f(at, [&](const Vector<T>& v, T rest) {
        return static_cast<T>(row) < ends ? v : broadcast(rest);
      });
  }

  /// Zeros the rows beyond the longest column of the vector that starts at `c`. A matrix product
  /// reads them for a problem whose columns straddle two vectors.
  void clear_rest(Index c, T* matrix) const {
    T* at = matrix + c;
    for (Index row = longest(c); row < rows; ++row) store<T>(at + row * stride, Vector<T>{});
  }

 private:
  Index longest(Index c) const { return std::min(most(load(lengths + c)), rows); }
  static Index least(const Vector<T>& v) {
    return static_cast<Index>(fold<T>(v, [](auto a, auto b) { return a < b ? a : b; }));
  }
  static Index most(const Vector<T>& v) {
    return static_cast<Index>(fold<T>(v, [](auto a, auto b) { return a < b ? b : a; }));
  }
};

/// Overwrites each column by its softmax: zeros beyond its end, and everywhere if all of it is
/// -inf. Writes each column's `max` and `sum`: softmax(x) = exp(x - max) / sum. NaN and +inf give
/// NaN.
template <class T>
void softmax_columns(const Columns<T>& x, T* max, T* sum) {
  for (Index c = 0; c < x.columns; c += width<T>) {
    Vector<T> most = broadcast(-std::numeric_limits<T>::infinity()), total = {};
    x.for_each(c, [&](const T* at, auto visible) {
      const Vector<T> v = visible(load(at), -std::numeric_limits<T>::infinity());
      most = most < v ? v : most;
    });
    most = most == -std::numeric_limits<T>::infinity() ? Vector<T>{} : most;
    x.for_each(c, [&](T* at, auto visible) {
      const Vector<T> power = visible(math::exp(load(at) - most), 0);
      store<T>(at, power);
      total += power;
    });
    const Vector<T> factor = total == 0 ? Vector<T>{} : 1 / total;
    x.for_each(c, [&](T* at, auto) { store<T>(at, load(at) * factor); });
    x.clear_rest(c, x.data);
    store<T>(max + c, most);
    store<T>(sum + c, total);
  }
}

/// Softmax backward with recomputed weights w: overwrites the scores `x` by w and `d`, the gradient
/// of the weights, by the gradient of the scores before they were scaled, scale w (d - sum(d w)).
template <class T>
void softmax_columns_backward(const Columns<T>& x, T* d, const T* max, const T* sum, T scale) {
  for (Index c = 0; c < x.columns; c += width<T>) {
    const Vector<T> most = load(max + c), total = load(sum + c);
    const Vector<T> factor = total == 0 ? Vector<T>{} : 1 / total;
    Vector<T> dots = {};
    x.for_each(c, [&](T* at, auto visible) {
      const Vector<T> weights = visible(math::exp(load(at) - most) * factor, 0);
      store<T>(at, weights);
      dots += visible(weights * load(d + (at - x.data)), 0);
    });
    x.for_each(c, [&](const T* at, auto visible) {
      T* to = d + (at - x.data);
      store<T>(to, visible(load(at) * (load(to) - dots) * scale, 0));
    });
    x.clear_rest(c, x.data);
    x.clear_rest(c, d);
  }
}

}  // namespace qkv::kernels
