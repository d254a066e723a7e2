#include "inspect/decomposition.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <xtensor-blas/xlinalg.hpp>
#include <xtensor/xarray.hpp>

#include "core/ops.h"

namespace qkv {
namespace {

using Array = xt::xarray<double>;

Array to_array(const Tensor& matrix) {
  require(matrix.rank() == 2, "[decomposition] needs a matrix, got {}", matrix.shape());
  const auto values = matrix.values();
  Array array = Array::from_shape(
      {static_cast<std::size_t>(matrix.dim(0)), static_cast<std::size_t>(matrix.dim(1))});
  std::ranges::copy(values, array.begin());
  return array;
}

/// Row `i` of the right singular vectors, with a sign that does not depend on the algorithm.
std::vector<double> direction(const Array& vt, std::size_t i) {
  std::vector<double> row;
  for (std::size_t j = 0; j < vt.shape(1); ++j) row.push_back(vt(i, j));
  const double largest = *std::ranges::max_element(row, {}, [](double v) { return std::abs(v); });
  if (largest < 0)
    for (double& v : row) v = -v;
  return row;
}

}  // namespace

std::vector<double> singular_values(const Tensor& matrix) {
  const Array array = to_array(matrix);
  const auto [u, s, vt] = xt::linalg::svd(array, false, true);
  return {s.begin(), s.end()};
}

Tensor PrincipalComponents::project(const Tensor& points) const {
  return matmul(points.to(DType::float64) - mean, directions, Transpose::second);
}

PrincipalComponents principal_components(const Tensor& points, Index components) {
  const Tensor x = points.to(DType::float64), centre = mean(x, 0, true), centred = x - centre;
  const Array covariance = to_array(matmul(permute(centred, {1, 0}), centred));
  const auto [u, s, vt] = xt::linalg::svd(covariance, false, true);
  const double total = std::accumulate(s.begin(), s.end(), 0.0);
  const Index count = std::min(components, x.dim(1));
  std::vector<double> directions, share;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const auto row = direction(vt, i);
    directions.insert(directions.end(), row.begin(), row.end());
    share.push_back(total > 0 ? s(i) / total : 0);
  }
  return {centre, Tensor::from(directions, {count, x.dim(1)}, DType::float64), share};
}

}  // namespace qkv
