#pragma once

#include <vector>

#include "core/tensor.h"

namespace qkv {

/// Singular values of A^T B for A [R, M] and B [R, N], the R largest (of at most min(M, N)) in
/// descending order: those of R_a R_b^T, where A^T = Q_a R_a and B^T = Q_b R_b, which is as small
/// as R.
std::vector<double> product_singular_values(const Tensor& a, const Tensor& b);

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
