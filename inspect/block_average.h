#pragma once

#include <vector>

#include "core/tensor.h"

namespace qkv {

/// A matrix, row-major.
struct Picture {
  std::vector<double> values;
  Index rows, columns;
  double at(Index r, Index c) const { return values[static_cast<std::size_t>(r * columns + c)]; }
};

/// A matrix of at most so many rows and columns: averages over blocks where there were more. A
/// vector is one row.
Picture block_average(const Tensor& matrix, Index most_rows, Index most_columns);

}  // namespace qkv
