#pragma once

#include "core/ops.h"

namespace qkv {

/// x [B, T, D] with zeros at and after lengths[b] in sequence b; no lengths: x itself.
Tensor without_padding(const Tensor& x, const Indices& lengths);

}  // namespace qkv
