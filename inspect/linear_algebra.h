#pragma once

#include <vector>

#include "core/tensor.h"

namespace qkv {

/// Singular values of A^T B for A [R, M] and B [R, N], the R largest (of at most min(M, N)) in
/// descending order: those of R_a R_b^T, where A^T = Q_a R_a and B^T = Q_b R_b, which is as small
/// as R.
std::vector<double> product_singular_values(const Tensor& a, const Tensor& b);

/// Eigenvectors of a symmetric matrix.
struct Eigenpairs {
  std::vector<double> values;  ///< in descending order
  Tensor vectors;              ///< [K, N], orthonormal rows
};

/// The `count` (of at most N) largest eigenvalues of a positive semidefinite matrix [N, N],
/// float64, and their eigenvectors.
Eigenpairs largest_eigenpairs(const Tensor& symmetric, Index count);

}  // namespace qkv
