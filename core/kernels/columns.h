#pragma once

#include <algorithm>
#include <limits>

#include "core/kernels/math.h"
#include "core/kernels/vector.h"

/// Softmax down the columns of a matrix whose rows hold whole vectors: side by side, columns need
/// no sums across a vector, and each is summed in the order of its rows.
namespace qkv::kernels {

/// A matrix [rows x columns] whose rows start `stride` numbers apart and have room for whole
/// vectors. Column c is only as long as `lengths[c]`; those beyond the last have the length 0.
template <class T>
struct Columns {
  T* data;
  Index rows, stride, columns;
  const T* lengths;

  /// Calls `f(numbers, seen)` for what each row holds of the vector of columns from `c` on, as far
  /// as the longest of them goes, where `seen(v, rest)` puts `rest` in place of what lies beyond a
  /// column's end.
  template <class F>
  void for_each(Index c, F f) const {
    const Vector<T> ends = load(lengths + c);
    const Index all = least(ends), any = std::min(most(ends), rows);
    T* at = data + c;
    Index row = 0;
    for (; row < std::min(all, any); ++row, at += stride)
      f(at, [](const Vector<T>& v, T) { return v; });
    for (; row < any; ++row, at += stride)
      f(at, [&](const Vector<T>& v, T rest) {
        return static_cast<T>(row) < ends ? v : broadcast(rest);
      });
  }

 private:
  static Index least(const Vector<T>& v) {
    return static_cast<Index>(fold<T>(v, [](auto a, auto b) { return a < b ? a : b; }));
  }
  static Index most(const Vector<T>& v) {
    return static_cast<Index>(fold<T>(v, [](auto a, auto b) { return a < b ? b : a; }));
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
    x.for_each(c, [&](T* at, auto) { store<T>(at, load(at) * factor); });
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
      dots += seen(weights * load(d + (at - x.data)), 0);
    });
    x.for_each(c, [&](const T* at, auto seen) {
      T* to = d + (at - x.data);
      store<T>(to, seen(load(at) * (load(to) - dots), 0));
    });
  }
}

}  // namespace qkv::kernels
