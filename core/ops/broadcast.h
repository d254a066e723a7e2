#pragma once

#include "core/tensor.h"

namespace qkv::detail {

/// x recomputed along the axes in which `shape` is larger; a constant.
Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// The adjoint of `broadcast_to`: x summed over the axes in which `shape` is smaller; a constant.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace qkv::detail
