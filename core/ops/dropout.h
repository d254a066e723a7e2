#pragma once

#include "core/random.h"

namespace qkv {

/// 0 with the given probability, else 1 / (1 - probability): what dropout multiplies number `index`
/// by.
template <class T>
T dropout_factor(const Random& random, Index index, double probability) {
  const bool kept = random.uniform(static_cast<std::uint64_t>(index)) >= probability;
  return kept ? static_cast<T>(1 / (1 - probability)) : T{0};
}

}  // namespace qkv
