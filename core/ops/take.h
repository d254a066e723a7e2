#pragma once

#include <vector>

#include "core/ops/make.h"

namespace qkv {

/// Places in the numbers of a tensor; -1 stands for a 0 that comes from nowhere.
using Positions = std::vector<Index, BlockAllocator<Index>>;

/// y[i] = x[positions[i]]. The positions must lie within x.
Tensor take(std::string_view op, const Tensor& x, const Shape& shape, Positions positions);

}  // namespace qkv
