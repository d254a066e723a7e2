#include "inspect/linear_algebra.h"

#include <xtensor-blas/xlinalg.hpp>

#include "core/ops.h"
#include "core/xtensor.h"

namespace qkv {
namespace {

using Matrix = xt::xtensor<double, 2>;

/// The triangular factor R of the columns of `matrix`^T.
Matrix triangular_factor(const Tensor& matrix) {
  const Tensor columns = permute(matrix.to(DType::float64), {1, 0});
  const Matrix x = xtensor_view<double, 2>(columns);
  return std::get<1>(xt::linalg::qr(x, xt::linalg::qrmode::r));
}

}  // namespace

std::vector<double> product_singular_values(const Tensor& a, const Tensor& b) {
  const Matrix r_a = triangular_factor(a), r_b = triangular_factor(b);
  const Matrix product = xt::linalg::dot(r_a, xt::transpose(r_b));
  const auto [u, s, vt] = xt::linalg::svd(product, false, false);
  return {s.begin(), s.end()};
}

Eigenpairs largest_eigenpairs(const Tensor& symmetric, Index count) {
  const Matrix matrix = xtensor_view<double, 2>(symmetric);
  const auto [values, columns] = xt::linalg::eigh(matrix);  // ascending, vectors in columns
  const Matrix vectors = columns;  // whose layout is that of `view`, which does not look at it
  Eigenpairs result;
  std::vector<Tensor> rows;
  for (Index i = 0; i < count; ++i) {
    const auto at = values.size() - 1 - static_cast<std::size_t>(i);
    result.values.push_back(values(at));
    const Matrix row = xt::view(vectors, xt::newaxis(), xt::all(), at);
    rows.push_back(from_xtensor(row));
  }
  result.vectors = concatenate(rows, 0);
  return result;
}

}  // namespace qkv
