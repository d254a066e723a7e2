#pragma once

#include "core/shape.h"

namespace qkv::kernels {

/// A row-major matrix inside a larger array: `stride` numbers lie between the starts of two rows.
/// `transposed` reads it as its transpose.
template <class T>
struct Matrix {
  T* data;
  Index stride;
  bool transposed = false;
};

/// C = alpha A B + beta C on the calling thread, with A [m, k] and B [k, n] after their
/// transposition, C [m, n].
template <class T>
void gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
          Matrix<T> c);

/// The same on several threads, cut by the rows of C.
template <class T>
void parallel_gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
                   Matrix<T> c);

}  // namespace qkv::kernels
