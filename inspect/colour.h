#pragma once

#include <span>

namespace qkv {

/// A colour in sRGB, from 0 to 255.
struct Colour {
  double red, green, blue;
};

/// The colour at `position` along evenly spaced stops; 0 is the first stop, 1 the last.
Colour between(std::span<const Colour> stops, double position);

}  // namespace qkv
