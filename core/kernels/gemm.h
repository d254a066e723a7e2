#pragma once

#include "core/shape.h"

/// Plain loops over numbers; nothing here knows of graphs.
namespace qkv::kernels {

/// A row-major matrix whose rows start `stride` numbers apart; `transposed` when it is to be read
/// so.
template <class T>
struct Matrix {
  T* data;
  Index stride;
  bool transposed = false;
};

/// C = alpha A B + beta C on the calling thread, where A is m x k, B k x n and C m x n after
/// transposition. C is not read when beta is 0. Each element is summed in an order that depends on
/// k alone, so that rows may be shared out among threads, or computed one by one, without a change
/// in any bit.
template <class T>
void gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
          Matrix<T> c);

/// The same on several threads.
template <class T>
void parallel_gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
                   Matrix<T> c);

}  // namespace qkv::kernels
