#pragma once

#include <algorithm>
#include <limits>

#include "core/kernels/math.h"
#include "core/kernels/vector.h"

/// Softmax down the columns of a matrix, a line of columns at a time: no sums across the lanes of a
/// vector, and each column is summed in the order of its rows.
namespace qkv::kernels {

/// A matrix [rows x columns] whose rows start `stride` elements apart and are padded to whole
/// lines. Column c has `lengths[c]` elements, padding columns have none.
template <class T>
struct Columns {
  T* data;
  Index rows, stride, columns;
  const T* lengths;
};

/// Vectors in 64 bytes, a line of the cache: softmax takes them together, as a matrix of long
/// columns is larger than the first cache.
constexpr int line_vectors = 64 / vector_bytes;
template <class T>
constexpr int line_width = line_vectors* width<T>;

/// The columns of a line, of which column `c` is the first.
template <class T>
class ColumnLine {
 public:
  ColumnLine(const Columns<T>& x, Index c)
      : x_(x), first_(c), longest_(0), shortest_(std::numeric_limits<Index>::max()) {
    unrolled<line_vectors>([&](auto v) {
      ends_[v] = load(x.lengths + c + v * width<T>);
      longest_ = std::max(longest_, folded(v, [](auto a, auto b) { return a < b ? b : a; }));
      shortest_ = std::min(shortest_, folded(v, [](auto a, auto b) { return a < b ? a : b; }));
    });
    longest_ = std::min(longest_, x.rows);
    shortest_ = std::min(shortest_, longest_);
  }

  /// Calls `f(v, at, visible)` for each vector `v` of each row up to the longest column's end. `at`
  /// points to the vector, and `visible(x, rest)` replaces by `rest` the lanes of x whose column
  /// ends before this row (a masked load).
  template <class F>
  void for_each(F f) const {
    T* at = x_.data + first_;
    Index row = 0;
    for (; row < shortest_; ++row, at += x_.stride)
      unrolled<line_vectors>(
          [&](auto v) { f(v, at + v * width<T>, [](const Vector<T>& x, T) { return x; }); });
    for (; row < longest_; ++row, at += x_.stride)
      unrolled<line_vectors>([&](auto v) {
        f(v, at + v * width<T>, [&](const Vector<T>& x, T rest) {
          return static_cast<T>(row) < ends_[v] ? x : broadcast(rest);
        });
      });
  }

  /// Zeros the rows beyond the longest column. A matrix product reads them for a problem whose
  /// columns straddle two lines.
  void clear_rest(T* matrix) const {
    T* at = matrix + first_;
    for (Index row = longest_; row < x_.rows; ++row)
      std::fill_n(at + row * x_.stride, line_width<T>, T{});
  }

 private:
  template <class Join>
  Index folded(int v, Join join) const {
    return static_cast<Index>(fold<T>(ends_[v], join));
  }

  Columns<T> x_;
  Index first_;
  Vector<T> ends_[line_vectors];
  Index longest_, shortest_;
};

/// Overwrites each column by its softmax: zeros beyond its end, and everywhere if all of it is
/// -inf. Writes each column's `max` and `sum`: softmax(x) = exp(x - max) / sum. NaN and +inf give
/// NaN.
template <class T>
void softmax_columns(const Columns<T>& x, T* max, T* sum) {
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  for (Index c = 0; c < x.columns; c += line_width<T>) {
    const ColumnLine<T> columns(x, c);
    Vector<T> most[line_vectors], total[line_vectors], factor[line_vectors];
    unrolled<line_vectors>([&](auto v) {
      most[v] = broadcast(lowest);
      total[v] = Vector<T>{};
    });
    columns.for_each([&](auto v, const T* at, auto visible) {
      const Vector<T> score = visible(load(at), lowest);
      most[v] = most[v] < score ? score : most[v];
    });
    unrolled<line_vectors>([&](auto v) { most[v] = most[v] == lowest ? Vector<T>{} : most[v]; });
    columns.for_each([&](auto v, T* at, auto visible) {
      const Vector<T> power = visible(math::exp(load(at) - most[v]), 0);
      store<T>(at, power);
      total[v] += power;
    });
    unrolled<line_vectors>([&](auto v) {
      factor[v] = total[v] == 0 ? Vector<T>{} : 1 / total[v];
      store<T>(max + c + v * width<T>, most[v]);
      store<T>(sum + c + v * width<T>, total[v]);
    });
    columns.for_each([&](auto v, T* at, auto) { store<T>(at, load(at) * factor[v]); });
    columns.clear_rest(x.data);
  }
}

/// Softmax backward with recomputed weights w: overwrites the scores `x` by w and `d`, the gradient
/// of the weights, by the gradient of the scores before they were scaled, scale w (d - sum(d w)).
template <class T>
void softmax_columns_backward(const Columns<T>& x, T* d, const T* max, const T* sum, T scale) {
  for (Index c = 0; c < x.columns; c += line_width<T>) {
    const ColumnLine<T> columns(x, c);
    Vector<T> most[line_vectors], factor[line_vectors], dots[line_vectors];
    unrolled<line_vectors>([&](auto v) {
      const Vector<T> total = load(sum + c + v * width<T>);
      most[v] = load(max + c + v * width<T>);
      factor[v] = total == 0 ? Vector<T>{} : 1 / total;
      dots[v] = Vector<T>{};
    });
    columns.for_each([&](auto v, T* at, auto visible) {
      const Vector<T> weights = visible(math::exp(load(at) - most[v]) * factor[v], 0);
      store<T>(at, weights);
      dots[v] += visible(weights * load(d + (at - x.data)), 0);
    });
    columns.for_each([&](auto v, const T* at, auto visible) {
      T* to = d + (at - x.data);
      store<T>(to, visible(load(at) * (load(to) - dots[v]) * scale, 0));
    });
    columns.clear_rest(x.data);
    columns.clear_rest(d);
  }
}

}  // namespace qkv::kernels
