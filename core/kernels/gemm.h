#pragma once

#include "core/shape.h"

/// The seam between the library and what multiplies matrices. Two engines stand behind it, of which
/// `cmake -DQKV_GEMM=own|blas` compiles one: ours (gemm_own.cpp), and OpenBLAS through xtensor-blas
/// (gemm_blas.cpp). docs/performance.md compares them.
///
/// Both give the same bits for any number of threads: work is partitioned by the problem, and BLAS
/// computes each part on one thread. What only ours promises is `product_rows_are_independent`.
namespace qkv::kernels {

/// A row-major matrix whose rows start `stride` elements apart; `transposed` when it is to be read
/// so.
template <class T>
struct Matrix {
  T* data;
  Index stride;
  bool transposed = false;
};

/// Whether the engine sums each element of a product in an order that depends on k alone: then rows
/// may be shared out among threads, or computed one by one as in decoding with a cache, without a
/// change in any bit. BLAS chooses its kernel by all three sizes.
extern const bool product_rows_are_independent;

/// C = alpha A B + beta C on the calling thread, where A is m x k, B k x n and C m x n after
/// transposition. C is not read when beta is 0.
template <class T>
void gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
          Matrix<T> c);

/// `gemm` on several threads.
template <class T>
void parallel_gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
                   Matrix<T> c);

}  // namespace qkv::kernels
