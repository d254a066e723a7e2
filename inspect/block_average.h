#pragma once

#include "core/tensor.h"

namespace qkv {

/// A matrix [R, C], or a vector as one row, reduced to at most so many rows and columns by averages
/// over blocks. [min(R, most_rows), min(C, most_columns)], float64.
Tensor block_average(const Tensor& matrix, Index most_rows, Index most_columns);

}  // namespace qkv
