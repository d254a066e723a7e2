#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "core/random.h"

namespace qkv::detail {

/// y[i] = x[i] mask[first + i] for i in [0, n), where the mask is 0 with the given probability in
/// (0, 1) and 1 / (1 - probability) elsewhere. `y` may be `x`.
template <class T>
void apply_dropout(const T* x, T* y, Index first, Index n, const Random& random,
                   double probability) {
  const auto threshold =
      static_cast<std::uint32_t>(std::min(std::ceil(probability * 0x1p32), 0x1p32 - 1));
  const T factor = static_cast<T>(1 / (1 - probability));
  std::array<std::uint32_t, 256> bits;
  for (Index begin = 0; begin < n; begin += std::ssize(bits)) {
    const Index count = std::min<Index>(std::ssize(bits), n - begin);
    random.bits(static_cast<std::uint64_t>(first + begin),
                std::span(bits).first(static_cast<std::size_t>(count)));
    for (Index i = 0; i < count; ++i)
      y[begin + i] = x[begin + i] * (bits[static_cast<std::size_t>(i)] < threshold ? T{0} : factor);
  }
}

}  // namespace qkv::detail
