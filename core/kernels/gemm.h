#pragma once

#include "core/shape.h"

/// Loops over plain arrays, without graphs.
namespace qkv::kernels {

/// A row-major matrix whose rows start `stride` elements apart; `transposed`: read as its
/// transpose.
template <class T>
struct Matrix {
  T* data;
  Index stride;
  bool transposed = false;
};

/// C = alpha A B + beta C on the calling thread, where A is m x k, B k x n and C m x n after
/// transposition. C is not read when beta is 0. Each element is summed in an order that depends on
/// k alone, so that rows divided among threads, or computed one by one, have the same bits.
template <class T>
void gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
          Matrix<T> c);

/// The same on several threads.
template <class T>
void parallel_gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
                   Matrix<T> c);

}  // namespace qkv::kernels
