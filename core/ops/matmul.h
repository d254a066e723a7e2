#pragma once

#include "core/tensor.h"

namespace qkv::detail {

/// Batched matrix product of two constants; an operand that is one matrix serves the whole batch.
/// With a `sum`, of as many elements in any shape, the product is added to it, in its buffer unless
/// another tensor shares that.
Tensor product(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
               Tensor sum = {});

}  // namespace qkv::detail
