#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "core/tensor.h"

namespace qkv {

/// A colour in sRGB, from 0 to 255.
struct Colour {
  double red, green, blue;
};

/// The colour at `position` along evenly spaced stops; 0 is the first stop, 1 the last.
Colour between(std::span<const Colour> stops, double position);

/// A matrix of values with labels; values below 0 have shades of their own.
struct HeatMap {
  std::vector<std::vector<double>> cells;  ///< NaN: a blank
  std::vector<std::string> rows, columns;
  double largest = 1;          ///< the absolute value with the strongest shade
  bool has_two_signs = false;  ///< whether the scale goes from -largest instead of 0
};

/// The rows of a matrix [R, C].
std::vector<std::vector<double>> rows_of(const Tensor& matrix);

/// The largest finite absolute value; 1 where that would be 0.
double largest_absolute(const std::vector<std::vector<double>>& cells);

/// Five columns with as many decimals as they hold, and a space: " 0.25 ".
std::string value_text(double value);

/// Cells shaded from nothing over grey to red, and to blue below 0, where there are colours; plain
/// values elsewhere.
/// Where `width` columns are too few, labels are abbreviated, then columns are numbered instead of
/// named, cells show percent of the largest, then tenths, and at last the columns are shown in
/// several parts.
std::string heat_map(const HeatMap& map, Colours colours, int width);

/// A matrix as coloured half blocks, blue below 0, grey at 0 and red above, scaled by its largest
/// absolute value; block averages where it is wider than `width` or taller than 64 rows.
std::string weight_map(const Tensor& matrix, Colours colours, int width);

/// Counts as a row of bars: "▁▂▅█▃▁"; zero is a blank.
std::string spark_line(const std::vector<Index>& counts);

}  // namespace qkv
