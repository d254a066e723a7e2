#pragma once

#include <string_view>

#include "core/tensor.h"

/// What several ops ask of their operands; not for users of the library. Each throws "[op] ...".
namespace qkv {

/// `shape` with another size of `axis`.
Shape with_size(const Shape& shape, int axis, Index size);

/// x [B, T, D] and lengths [B], each in [0, T].
void require_lengths(std::string_view op, const Tensor& x, const Indices& lengths);

/// logits [..., V] and targets [...] below V.
void require_targets(std::string_view op, const Tensor& logits, const Indices& targets);

}  // namespace qkv
