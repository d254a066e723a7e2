#include <algorithm>
#include <limits>
#include <mutex>
#include <xtensor-blas/xblas.hpp>

#include "core/error.h"
#include "core/kernels/gemm.h"
#include "core/parallel.h"

/// A function of OpenBLAS, which CMake finds without its header.
extern "C" void openblas_set_num_threads(int count);

namespace qkv::kernels {
namespace {

/// Keeps OpenBLAS on the calling thread: the library's own threads share the work out. Built with
/// OpenMP, as Debian recommends, OpenBLAS has a limit for each thread that calls it.
void use_one_thread() {
  thread_local const bool done = [] {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(done);
}

/// A size or stride as BLAS takes it.
int blas_size(Index size) {
  require<ValueError>(size <= std::numeric_limits<int>::max(),
                      "[matmul] OpenBLAS multiplies matrices of at most 2^31 - 1 rows or columns, "
                      "got {}; build with -DQKV_GEMM=own",
                      size);
  return static_cast<int>(size);
}

/// BLAS refuses a stride of 0, which matrices without elements have.
int stride_of(Index stride) {
  return stride < 1 ? 1 : blas_size(stride);
}

}  // namespace

const bool product_rows_are_independent = false;

template <class T>
void gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
          Matrix<T> c) {
  const auto transposed = [](bool yes) { return yes ? cxxblas::Trans : cxxblas::NoTrans; };
  use_one_thread();
  cxxblas::gemm(cxxblas::RowMajor, transposed(a.transposed), transposed(b.transposed), blas_size(m),
                blas_size(n), blas_size(k), alpha, a.data, stride_of(a.stride), b.data,
                stride_of(b.stride), beta, c.data, stride_of(c.stride));
}

template <class T>
void parallel_gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
                   Matrix<T> c) {
  blas_size(std::max({n, k, a.stride, b.stride, c.stride}));  // threads must not throw
  // Few parts, for each of which OpenBLAS packs B again.
  parallel_for(partition(m, n * k / 8, std::clamp<Index>(m / 64, 1, 4)),
               [&](Index begin, Index end) {
                 gemm<T>(end - begin, n, k, alpha,
                         {a.data + begin * (a.transposed ? 1 : a.stride), a.stride, a.transposed},
                         b, beta, {c.data + begin * c.stride, c.stride});
               });
}

template void gemm(Index, Index, Index, float, Matrix<const float>, Matrix<const float>, float,
                   Matrix<float>);
template void gemm(Index, Index, Index, double, Matrix<const double>, Matrix<const double>, double,
                   Matrix<double>);
template void parallel_gemm(Index, Index, Index, float, Matrix<const float>, Matrix<const float>,
                            float, Matrix<float>);
template void parallel_gemm(Index, Index, Index, double, Matrix<const double>, Matrix<const double>,
                            double, Matrix<double>);

}  // namespace qkv::kernels
