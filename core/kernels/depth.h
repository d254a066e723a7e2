#pragma once

#include <algorithm>

#include "core/shape.h"

namespace qkv::kernels {

/// Depth of k that a product sums in registers before it adds the sum to C: equal blocks of at most
/// 448. A kernel that promises the bits of our products (gemm_own.cpp) has to sum in the same
/// blocks.
constexpr Index most_depth = 448;
constexpr Index depth_of(Index k) {
  if (k <= most_depth) return std::max<Index>(k, 1);
  const Index blocks = (k + most_depth - 1) / most_depth;
  return (k + blocks - 1) / blocks;
}

}  // namespace qkv::kernels
