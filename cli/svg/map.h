#pragma once

#include "cli/picture.h"
#include "cli/svg/elements.h"

namespace qkv::svg_elements {

/// What the shades of a map mean.
struct Scale {
  double largest = 1;
  bool has_two_signs = false;

  bool operator==(const Scale&) const = default;
};
Scale scale_of(const HeatMap& map);
Scale scale_of(const Weights& weights);

/// The cells of a map, or block averages of one that is too large, and the labels beside them.
Drawing drawn(const HeatMap& map);
Drawing drawn(const Weights& weights);
/// The shades from the least to the largest value, with some values below them.
Drawing legend(const Scale& scale);

}  // namespace qkv::svg_elements
