#pragma once

#include "cli/picture.h"
#include "cli/svg/elements.h"

namespace qkv::svg_elements {

/// Lines with a mark at each value, their labels on the right.
Drawing drawn(const Curves& curves);
/// Marks at points, with a shape and a colour for each kind of label; numbers in rings.
Drawing drawn(const Scatter& scatter);

}  // namespace qkv::svg_elements
