#include "core/kernels/gemm.h"

#include <omp.h>

#include <limits>
#include <xtensor-blas/xblas.hpp>

#include "core/error.h"
#include "core/parallel.h"

namespace qkv::kernels {
namespace {

int narrow(Index size) {
  require(size <= std::numeric_limits<int>::max(), "[gemm] size {} exceeds what BLAS can count",
          size);
  return static_cast<int>(size);
}

/// Keeps OpenBLAS on the calling thread: how it would share a product out depends on the number of
/// threads, and so would the sums' last bits.
class OneThread {
 public:
  OneThread() : threads_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(threads_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_;
};

}  // namespace

template <class T>
void gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
          Matrix<T> c) {
  const OneThread scope;
  const auto flag = [](bool transposed) { return transposed ? cxxblas::Trans : cxxblas::NoTrans; };
  cxxblas::gemm(cxxblas::RowMajor, flag(a.transposed), flag(b.transposed), narrow(m), narrow(n),
                narrow(k), alpha, a.data, narrow(a.stride), b.data, narrow(b.stride), beta, c.data,
                narrow(c.stride));
}

template <class T>
void parallel_gemm(Index m, Index n, Index k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
                   Matrix<T> c) {
  parallel_for(cut(m, n * k / 8), [=](Index begin, Index end) {
    Matrix<const T> rows = a;
    rows.data += begin * (a.transposed ? 1 : a.stride);
    gemm(end - begin, n, k, alpha, rows, b, beta, Matrix<T>{c.data + begin * c.stride, c.stride});
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
