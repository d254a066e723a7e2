#pragma once

#include <string>
#include <utility>
#include <variant>

#include "cli/curve.h"
#include "cli/heat_map.h"
#include "cli/scatter.h"
#include "cli/terminal.h"

namespace qkv {

/// A parameter, [R, C] or [C].
struct Weights {
  Tensor values;
};

/// A drawing of a command, for a terminal (`in_terminal`) and for papers (cli/svg.h).
struct Picture {
  std::string title;  ///< a heading, and details after a colon: "layer 0, head 1: entropy 1.2 bits"
  std::variant<HeatMap, Scatter, Weights, Curve> content;
  bool needs_colours = false;  ///< without them a table says the same, or the shades say nothing
  bool begins_row = false;     ///< among several pictures: stands below those before it
};

/// The title and the picture under it in `width` columns; empty where it needs colours that there
/// are not.
std::string in_terminal(const Picture& picture, Colours colours, int width);

}  // namespace qkv
