// inspect/linear_algebra.h without BLAS and LAPACK, as far as a page needs it.
#include "inspect/linear_algebra.h"

#include <algorithm>
#include <cmath>

#include "core/ops.h"

namespace qkv {
namespace {

double length(const Tensor& vector) {
  return std::sqrt(sum(vector * vector).item());
}

/// The eigenvector of the largest eigenvalue by power iteration: [1, N].
Tensor main_direction(const Tensor& symmetric) {
  constexpr int most_rounds = 1000;
  constexpr double enough = 1e-12;
  // The longest row is no eigenvector of another eigenvalue.
  const Tensor lengths = sum(symmetric * symmetric, -1);
  const auto values = lengths.values();
  const Index longest = std::ranges::max_element(values) - values.begin();
  Tensor direction = slice(symmetric, 0, longest, longest + 1);
  for (int round = 0; round < most_rounds; ++round) {
    const double norm = length(direction);
    if (norm == 0) break;
    direction = direction * (1 / norm);
    Tensor next = matmul(direction, symmetric);
    const double value = length(next);
    const bool settled = length(next - direction * value) <= enough * value;
    direction = std::move(next);
    if (settled) break;
  }
  const double norm = length(direction);
  return norm == 0 ? direction : direction * (1 / norm);
}

}  // namespace

Eigenpairs largest_eigenpairs(const Tensor& symmetric, Index count) {
  Eigenpairs result;
  std::vector<Tensor> rows;
  Tensor rest = symmetric;
  for (Index i = 0; i < count; ++i) {
    const Tensor direction = main_direction(rest);
    result.values.push_back(sum(matmul(direction, rest) * direction).item());
    rest = rest - matmul(direction, direction, Transpose::first) * result.values.back();
    rows.push_back(direction);
  }
  result.vectors = concatenate(rows, 0);
  return result;
}

}  // namespace qkv
