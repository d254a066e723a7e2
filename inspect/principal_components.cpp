#include "inspect/principal_components.h"

#include <algorithm>
#include <cmath>

#include "core/ops.h"
#include "inspect/linear_algebra.h"

namespace qkv {
namespace {

/// The direction with length 1 and a sign that does not depend on the algorithm.
Tensor normalised(const Tensor& direction) {
  const auto values = direction.values();
  const double largest =
      *std::ranges::max_element(values, {}, [](double v) { return std::abs(v); });
  const double norm = std::sqrt(sum(direction * direction).item());
  return direction * ((largest < 0 ? -1 : 1) / norm);
}

}  // namespace

Tensor PrincipalComponents::project(const Tensor& points) const {
  return matmul(points.to(DType::float64) - mean, directions, Transpose::second);
}

PrincipalComponents principal_components(const Tensor& points, Index components) {
  const Tensor x = points.to(DType::float64), centre = mean(x, 0, true), centred = x - centre;
  const bool by_gram = x.dim(0) < x.dim(1);
  const Tensor symmetric = by_gram ? matmul(centred, centred, Transpose::second)
                                   : matmul(centred, centred, Transpose::first);
  const Index count = std::min(components, x.dim(1));
  const auto [values, vectors] = largest_eigenpairs(symmetric, std::min(count, symmetric.dim(0)));
  const double total = sum(centred * centred).item();
  PrincipalComponents result{centre, {}, {}};
  std::vector<Tensor> directions;
  for (Index i = 0; i < count; ++i) {
    const double value = i < std::ssize(values) ? values[static_cast<std::size_t>(i)] : 0;
    // A smaller value is rounding error.
    const bool varies = value > 1e-14 * total;
    result.variance_fraction.push_back(varies ? value / total : 0);
    if (!varies) {
      directions.push_back(Tensor::zeros({1, x.dim(1)}, DType::float64));
      continue;
    }
    const Tensor vector = slice(vectors, 0, i, i + 1);
    directions.push_back(normalised(by_gram ? matmul(vector, centred) : vector));
  }
  result.directions = concatenate(directions, 0);
  return result;
}

}  // namespace qkv
