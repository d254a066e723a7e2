#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/axis.h"

namespace qkv {

/// Positive values along a logarithmic axis, and a line through them.
struct Curve {
  std::vector<double> x;             ///< positive, ascending; not empty
  std::vector<double> points, line;  ///< a value for each x
  std::optional<std::size_t> mark;   ///< the index of a point of the line
  std::string axis, points_name, line_name, mark_name;
};

/// The axes of a curve. The vertical one ends at the first tick a quarter above the largest value
/// before the line's minimum, and all that is higher is drawn at its end: a loss that diverges
/// leaves room for its descent.
Frame frame_of(const Curve& curve, double width, double height);

/// The curve as characters, `height` lines with the axes and a legend below.
std::string curve_plot(const Curve& curve, int width, int height);

}  // namespace qkv
