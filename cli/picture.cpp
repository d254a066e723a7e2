#include "cli/picture.h"

#include <algorithm>

namespace qkv {
namespace {

std::string characters_of(const HeatMap& map, Colours colours, int width) {
  return heat_map(map, colours, width);
}

std::string characters_of(const Scatter& scatter, Colours /*colours*/, int width) {
  return scatter_plot(scatter, std::min(width, 78), 20);
}

std::string characters_of(const Weights& weights, Colours colours, int width) {
  return weight_map(weights.values, colours, width);
}

}  // namespace

std::string in_terminal(const Picture& picture, Colours colours, int width) {
  if (picture.needs_colours && colours == Colours::none) return "";
  return printable(picture.title) + "\n" +
         std::visit([&](const auto& content) { return characters_of(content, colours, width); },
                    picture.content);
}

}  // namespace qkv
