#include "cli/picture.h"

#include <algorithm>

namespace qkv {
std::string in_terminal(const Picture& picture, Colours colours, int width) {
  if (picture.needs_colours && colours == Colours::none) return "";
  const std::string title = printable(picture.title) + "\n";
  if (const auto* map = std::get_if<HeatMap>(&picture.content))
    return title + heat_map(*map, colours, width);
  if (const auto* weights = std::get_if<Weights>(&picture.content))
    return title + weight_map(weights->values, colours, width);
  if (const auto* curve = std::get_if<Curve>(&picture.content))
    return title + curve_plot(*curve, std::min(width, 78), 16);
  return title + scatter_plot(std::get<Scatter>(picture.content), std::min(width, 78), 20);
}

}  // namespace qkv
