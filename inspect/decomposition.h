#pragma once

#include <vector>

#include "core/tensor.h"

namespace qkv {

/// Singular values of a matrix [M, N], the largest first.
std::vector<double> singular_values(const Tensor& matrix);

/// Points seen along the directions in which they differ most.
struct PrincipalComponents {
  Tensor mean;                ///< [1, D]
  Tensor directions;          ///< [K, D], each of length 1
  std::vector<double> share;  ///< of the variance, for each component

  /// Points [N, D] along the directions, [N, K], float64.
  Tensor project(const Tensor& points) const;
};

/// Principal component analysis of points [N, D] (Pearson 1901), K = min(components, D). A
/// component's sign is such that its largest coefficient is positive.
PrincipalComponents principal_components(const Tensor& points, Index components);

}  // namespace qkv
