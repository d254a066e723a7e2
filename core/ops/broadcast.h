#pragma once

#include <array>

#include "core/tensor.h"

namespace qkv::detail {

/// How many elements of a tensor lie between neighbours along each axis of a result that reads it.
using Steps = std::array<Index, Shape::max_rank>;
/// Steps of each axis of `to` in a contiguous tensor of shape `from` that broadcasts to it: 0 where
/// it repeats.
Steps broadcast_steps(const Shape& from, const Shape& to);
/// A tensor of `shape` whose elements are those of x at these steps; a constant.
Tensor strided_copy(const Tensor& x, const Shape& shape, const Steps& steps);

/// x repeated along the axes in which `shape` is larger; a constant.
Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// The adjoint of `broadcast_to`: x summed over the axes in which `shape` is smaller; a constant.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace qkv::detail
