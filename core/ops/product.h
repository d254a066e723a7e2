#pragma once

#include "core/tensor.h"

namespace qkv {

/// Batched product of two constants; an operand that is one matrix serves the whole batch. With a
/// `sum`, which has the product's numbers in any shape, it is added to that, in its memory unless
/// somebody else holds it.
Tensor product(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
               Tensor sum = {});

}  // namespace qkv
