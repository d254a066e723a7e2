#pragma once

#include <cstdint>
#include <span>

namespace qkv {

/// How the elements of a weight are kept.
enum class WeightFormat {
  float32,
  int8  ///< with a float32 scale for each row; float32 again where they are multiplied
};

/// Writes a row of weights as integers and returns their scale, the largest absolute value / 127:
/// value = scale * integer, to half of a scale (absmax quantization, by row; Dettmers et al. 2022,
/// "LLM.int8()", 2.1). Throws ValueError for a value that is not finite.
float to_int8(std::span<const float> row, std::span<std::int8_t> integers);

}  // namespace qkv
