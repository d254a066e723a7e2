#pragma once

#include <string_view>
#include <vector>

#include "core/memory.h"
#include "core/tensor.h"

namespace qkv::detail {

/// Flat offsets into the elements of a source tensor; -1 yields zero.
using Offsets = std::vector<Index, BlockAllocator<Index>>;

/// y[i] = x[offsets[i]]. The offsets must lie within x.
Tensor gather_elements(std::string_view op, const Tensor& x, const Shape& shape, Offsets offsets);

}  // namespace qkv::detail
