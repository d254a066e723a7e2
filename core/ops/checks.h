#pragma once

#include <string_view>

#include "core/tensor.h"

/// Requirements of several ops on their operands. Each check throws "[op] ...".
namespace qkv::detail {

/// Throws TypeError unless a and b have one dtype.
void require_same_dtype(std::string_view op, const Tensor& a, const Tensor& b);

/// x [B, T, D] and lengths [B], each in [0, T].
void require_lengths(std::string_view op, const Tensor& x, const Indices& lengths);

/// logits [..., V] and targets [...] below V.
void require_targets(std::string_view op, const Tensor& logits, const Indices& targets);

}  // namespace qkv::detail
