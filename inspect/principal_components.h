#pragma once

#include <vector>

#include "core/tensor.h"

namespace qkv {

/// Directions of largest variance.
struct PrincipalComponents {
  Tensor mean;        ///< [1, D]
  Tensor directions;  ///< [K, D], orthonormal; 0 where the points do not vary any more
  std::vector<double> variance_fraction;  ///< of the total, for each component

  /// Points [N, D] along the directions, [N, K], float64.
  Tensor project(const Tensor& points) const;
};

/// Principal component analysis of points [N, D] (Pearson 1901), K = min(components, D), from the
/// eigenvectors of the covariance [D, D] or of the Gram matrix [N, N], whichever is smaller. A
/// component's sign is such that its largest coefficient is positive.
PrincipalComponents principal_components(const Tensor& points, Index components);

}  // namespace qkv
