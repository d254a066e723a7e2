#pragma once

#include <vector>

#include "core/random.h"
#include "core/tensor.h"

namespace qkv::tests {

/// Standard normal elements, the same for the same arguments.
inline Tensor randn(const Shape& shape, DType dtype = DType::float32, std::uint64_t stream = 0) {
  const Random random(11, Purpose::testing, stream);
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = random.normal(i);
  return Tensor::from(values, shape, dtype);
}

}  // namespace qkv::tests
