#include "core/weight_format.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace qkv {

float to_int8(std::span<const float> row, std::span<std::int8_t> integers) {
  constexpr float largest_integer = 127;
  float largest = 0;
  for (const float value : row) {
    require<ValueError>(std::isfinite(value), "[int8] the weight {} has no integer", value);
    largest = std::max(largest, std::abs(value));
  }
  const float scale = largest / largest_integer;
  std::ranges::transform(row, integers.begin(), [&](float value) {
    const float nearest = scale > 0 ? std::round(value / scale) : 0;
    return static_cast<std::int8_t>(std::clamp(nearest, -largest_integer, largest_integer));
  });
  return scale;
}

}  // namespace qkv
