#pragma once

#include <bit>
#include <utility>

#include "core/kernels/vector.h"

/// Squares of a vector's width of elements, transposed in registers.
namespace qkv::kernels {

/// Swaps the off-diagonal blocks of `Size` elements in each square of 2 Size rows. `Lane`: indices
/// of the lanes of a vector.
template <class T, int Size, int... Lane>
void swap_blocks(Vector<T> (&rows)[width<T>], std::integer_sequence<int, Lane...>) {
  for (int i = 0; i < width<T>; ++i) {
    if (i & Size) continue;
    const Vector<T> a = rows[i], b = rows[i + Size];
    rows[i] = __builtin_shufflevector(a, b, (Lane & Size ? width<T> + Lane - Size : Lane)...);
    rows[i + Size] =
        __builtin_shufflevector(a, b, (Lane & Size ? width<T> + Lane : Lane + Size)...);
  }
}

/// Transposes a square of rows in registers.
template <class T>
void transpose_rows(Vector<T> (&rows)[width<T>]) {
  // Swaps the off-diagonal blocks of size 1, 2, 4, ...
  [&]<int... Stage>(std::integer_sequence<int, Stage...>) {
    (swap_blocks<T, 1 << Stage>(rows, std::make_integer_sequence<int, width<T>>()), ...);
  }
  (std::make_integer_sequence<int, std::countr_zero(static_cast<unsigned>(width<T>))>());
}

/// Loads rows x[j stride], n of them and k elements of each, and zeros beyond.
template <class T>
void load_rows(Index k, Index n, const T* x, Index stride, Vector<T> (&rows)[width<T>]) {
  if (k == width<T> && n == width<T>)
    unrolled<width<T>>([&](auto j) { rows[j] = load(x + j * stride); });
  else
    unrolled<width<T>>(
        [&](auto j) { rows[j] = j < n ? load_most(x + j * stride, k) : Vector<T>{}; });
}

}  // namespace qkv::kernels
