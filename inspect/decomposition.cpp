#include "inspect/decomposition.h"

#include <algorithm>
#include <cmath>
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

/// The direction with length 1 and a sign that does not depend on the algorithm.
Tensor normalised(const Tensor& direction) {
  const auto values = direction.values();
  const double largest =
      *std::ranges::max_element(values, {}, [](double v) { return std::abs(v); });
  const double norm = std::sqrt(sum(direction * direction).item());
  return direction * ((largest < 0 ? -1 : 1) / norm);
}

}  // namespace

std::vector<double> product_singular_values(const Tensor& a, const Tensor& b) {
  const Matrix r_a = triangular_factor(a), r_b = triangular_factor(b);
  const Matrix product = xt::linalg::dot(r_a, xt::transpose(r_b));
  const auto [u, s, vt] = xt::linalg::svd(product, false, false);
  return {s.begin(), s.end()};
}

Tensor PrincipalComponents::project(const Tensor& points) const {
  return matmul(points.to(DType::float64) - mean, directions, Transpose::second);
}

PrincipalComponents principal_components(const Tensor& points, Index components) {
  const Tensor x = points.to(DType::float64), centre = mean(x, 0, true), centred = x - centre;
  const bool by_gram = x.dim(0) < x.dim(1);
  const Tensor symmetric = by_gram ? matmul(centred, centred, Transpose::second)
                                   : matmul(centred, centred, Transpose::first);
  const auto [values, vectors] = xt::linalg::eigh(xtensor_view<double, 2>(symmetric));  // ascending
  const double total = sum(centred * centred).item();
  const Index count = std::min(components, x.dim(1));
  PrincipalComponents result{centre, {}, {}};
  std::vector<Tensor> directions;
  for (Index i = 0; i < count; ++i) {
    const Index at = std::ssize(values) - 1 - i;
    const double value = at < 0 ? 0 : values(static_cast<std::size_t>(at));
    // A smaller value is rounding error.
    const bool varies = value > 1e-14 * total;
    result.variance_fraction.push_back(varies ? value / total : 0);
    if (!varies) {
      directions.push_back(Tensor::zeros({1, x.dim(1)}, DType::float64));
      continue;
    }
    const Matrix column = xt::view(vectors, xt::newaxis(), xt::all(), static_cast<std::size_t>(at));
    const Tensor vector = from_xtensor(column);
    directions.push_back(normalised(by_gram ? matmul(vector, centred) : vector));
  }
  result.directions = concatenate(directions, 0);
  return result;
}

}  // namespace qkv
