#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/shape.h"

namespace qkv {

/// A picture of 8-bit sRGB pixels, row by row.
struct Image {
  Index width = 0, height = 0;
  std::vector<std::uint8_t> rgb = {};  ///< 3 width height values
};

/// The picture as a PNG file (ISO/IEC 15948). Equal pictures give equal bytes.
std::string png(const Image& image);

}  // namespace qkv
