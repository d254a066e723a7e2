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
};

/// The vector of columns that starts at column `c`.
template <class T>
class ColumnVector {
 public:
  ColumnVector(const Columns<T>& x, Index c)
      : x_(x),
        first_(c),
        ends_(load(x.lengths + c)),
        longest_(std::min(folded([](auto a, auto b) { return a < b ? b : a; }), x.rows)),
        shortest_(std::min(folded([](auto a, auto b) { return a < b ? a : b; }), longest_)) {}

  /// Calls `f(row, visible)` for each row up to the longest column's end. `row` points to the
  /// vector, and `visible(v, rest)` replaces by `rest` the lanes of v whose column ends before this
  /// row (a masked load).
  template <class F>
  void for_each(F f) const {
    T* at = x_.data + first_;
    Index row = 0;
    for (; row < shortest_; ++row, at += x_.stride) f(at, [](const Vector<T>& v, T) { return v; });
    for (; row < longest_; ++row, at += x_.stride)
      f(at, [&](const Vector<T>& v, T rest) {
        return static_cast<T>(row) < ends_ ? v : broadcast(rest);
      });
  }

  /// Zeros the rows beyond the longest column. A matrix product reads them for a problem whose
  /// columns straddle two vectors.
  void clear_rest(T* matrix) const {
    T* at = matrix + first_;
    for (Index row = longest_; row < x_.rows; ++row) store<T>(at + row * x_.stride, Vector<T>{});
  }

 private:
  template <class Join>
  Index folded(Join join) const {
    return static_cast<Index>(fold<T>(ends_, join));
  }

  Columns<T> x_;
  Index first_;
  Vector<T> ends_;
  Index longest_, shortest_;
};

/// Overwrites each column by its softmax: zeros beyond its end, and everywhere if all of it is
/// -inf. Writes each column's `max` and `sum`: softmax(x) = exp(x - max) / sum. NaN and +inf give
/// NaN.
template <class T>
void softmax_columns(const Columns<T>& x, T* max, T* sum) {
  for (Index c = 0; c < x.columns; c += width<T>) {
    const ColumnVector<T> columns(x, c);
    Vector<T> most = broadcast(-std::numeric_limits<T>::infinity()), total = {};
    columns.for_each([&](const T* at, auto visible) {
      const Vector<T> v = visible(load(at), -std::numeric_limits<T>::infinity());
      most = most < v ? v : most;
    });
    most = most == -std::numeric_limits<T>::infinity() ? Vector<T>{} : most;
    columns.for_each([&](T* at, auto visible) {
      const Vector<T> power = visible(math::exp(load(at) - most), 0);
      store<T>(at, power);
      total += power;
    });
    const Vector<T> factor = total == 0 ? Vector<T>{} : 1 / total;
    columns.for_each([&](T* at, auto) { store<T>(at, load(at) * factor); });
    columns.clear_rest(x.data);
    store<T>(max + c, most);
    store<T>(sum + c, total);
  }
}

/// Softmax backward with recomputed weights w: overwrites the scores `x` by w and `d`, the gradient
/// of the weights, by the gradient of the scores before they were scaled, scale w (d - sum(d w)).
template <class T>
void softmax_columns_backward(const Columns<T>& x, T* d, const T* max, const T* sum, T scale) {
  for (Index c = 0; c < x.columns; c += width<T>) {
    const ColumnVector<T> columns(x, c);
    const Vector<T> most = load(max + c), total = load(sum + c);
    const Vector<T> factor = total == 0 ? Vector<T>{} : 1 / total;
    Vector<T> dots = {};
    columns.for_each([&](T* at, auto visible) {
      const Vector<T> weights = visible(math::exp(load(at) - most) * factor, 0);
      store<T>(at, weights);
      dots += visible(weights * load(d + (at - x.data)), 0);
    });
    columns.for_each([&](const T* at, auto visible) {
      T* to = d + (at - x.data);
      store<T>(to, visible(load(at) * (load(to) - dots) * scale, 0));
    });
    columns.clear_rest(x.data);
    columns.clear_rest(d);
  }
}

}  // namespace qkv::kernels
