#include "inspect/attention_image.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "inspect/colour.h"

namespace qkv {
namespace {

constexpr Index gap = 4;         // pixels around a map
constexpr Index most_maps = 16;  // layers, and heads

Colour viridis(double value) {
  static constexpr std::array<Colour, 9> stops = {{{68, 1, 84},
                                                   {71, 45, 123},
                                                   {59, 82, 139},
                                                   {44, 114, 142},
                                                   {33, 144, 140},
                                                   {39, 173, 129},
                                                   {93, 200, 99},
                                                   {170, 220, 50},
                                                   {253, 231, 37}}};
  return between(stops, value);
}

/// Fills a square of `side` pixels.
void fill(Image& image, Index left, Index top, Index side, const Colour& colour) {
  const std::array<std::uint8_t, 3> pixel = {static_cast<std::uint8_t>(std::lround(colour.red)),
                                             static_cast<std::uint8_t>(std::lround(colour.green)),
                                             static_cast<std::uint8_t>(std::lround(colour.blue))};
  for (Index y = top; y < top + side; ++y)
    for (Index x = left; x < left + side; ++x)
      std::ranges::copy(pixel, image.rgb.begin() + 3 * (y * image.width + x));
}

}  // namespace

Image attention_image(const LayerWeights& layers) {
  constexpr Index largest_cell = 24, map_size = 240;
  const Index rows = std::min<Index>(std::ssize(layers), most_maps),
              columns = std::min(layers.at(0).dim(0), most_maps), queries = layers[0].dim(1),
              keys = layers[0].dim(2);
  const Index cell = std::clamp<Index>(map_size / std::max(queries, keys), 1, largest_cell);
  Image image{gap + columns * (keys * cell + gap), gap + rows * (queries * cell + gap)};
  image.rgb.assign(static_cast<std::size_t>(3 * image.width * image.height), 255);
  for (Index l = 0; l < rows; ++l) {
    const auto weights = layers[static_cast<std::size_t>(l)].values();
    for (Index h = 0; h < columns; ++h)
      for (Index q = 0; q < queries; ++q)
        for (Index k = 0; k < keys; ++k)
          fill(image, gap + h * (keys * cell + gap) + k * cell,
               gap + l * (queries * cell + gap) + q * cell, cell,
               viridis(weights[static_cast<std::size_t>((h * queries + q) * keys + k)]));
  }
  return image;
}

}  // namespace qkv
