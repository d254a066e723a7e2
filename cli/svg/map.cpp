#include "cli/svg/map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "inspect/block_average.h"
#include "inspect/colour.h"

namespace qkv::svg_elements {
namespace {

std::string hex(const Colour& c) {
  return fmt::format("#{:02x}{:02x}{:02x}", std::lround(c.red), std::lround(c.green),
                     std::lround(c.blue));
}

/// Of a value over the largest, of which the small ones differ most. Larger values are darker.
Colour colour_of(double fraction, const Scale& scale) {
  static constexpr std::array<Colour, 5> one_sign = {
      {{245, 245, 250}, {199, 210, 254}, {129, 140, 248}, {67, 56, 202}, {30, 27, 75}}};
  static constexpr std::array<Colour, 5> two_signs = {
      {{30, 64, 175}, {96, 165, 250}, {248, 248, 251}, {248, 113, 113}, {153, 27, 27}}};
  const double raised = std::pow(std::min(std::abs(fraction), 1.0), 0.7);
  if (scale.has_two_signs) return between(two_signs, (1 + std::copysign(raised, fraction)) / 2);
  return between(one_sign, fraction > 0 ? raised : 0);
}

constexpr std::size_t most_cells = 128;

/// What is drawn of a map: of one that is too large, block averages.
struct Blocks {
  HeatMap map;
  bool are_averages = false;
};

Blocks blocks_of(const HeatMap& map) {
  const std::size_t rows = map.cells.size(), columns = rows ? map.cells[0].size() : 0;
  if (rows <= most_cells && columns <= most_cells) return {map};
  std::vector<double> values;
  for (const auto& row : map.cells) values.insert(values.end(), row.begin(), row.end());
  const Tensor matrix =
      Tensor::from(values, {static_cast<Index>(rows), static_cast<Index>(columns)}, DType::float64);
  return {{rows_of(block_average(matrix, most_cells, most_cells)),
           {},
           {},
           map.largest,
           map.has_two_signs},
          true};
}

/// Parameters have no labels, and a scale up to their largest block.
Blocks blocks_of(const Weights& weights) {
  const Tensor blocks = block_average(weights.values, most_cells, most_cells);
  HeatMap map{rows_of(blocks), {}, {}, 1, true};
  map.largest = largest_absolute(map.cells);
  return {map, blocks.size() < weights.values.size()};
}

/// Draws the cells of a map and the labels beside them.
class MapDrawer {
 public:
  explicit MapDrawer(const Blocks& blocks)
      : map_(blocks.map),
        is_averaged_(blocks.are_averages),
        rows_(map_.cells.size()),
        columns_(rows_ ? map_.cells[0].size() : 0),
        scale_(scale_of(map_)),
        width_(cell_size(columns_)),
        height_(std::min(cell_size(rows_), width_)) {
    abbreviate(map_.rows, longest_row_label);
    abbreviate(map_.columns, longest_column_label);
    constexpr double beside = 6;
    if (!map_.rows.empty()) left_ = widest_text(map_.rows, row_text()) + beside;
    const double widest = widest_text(map_.columns, column_text());
    angle_ = widest <= width_ - 3 ? 0 : width_ > 16 ? 45 : 90;
    const double upright = widest * std::sin(radians()) + column_text();
    if (!map_.columns.empty()) top_ = upright + beside;
  }

  Drawing drawing() const {
    Drawing result;
    result.elements = labels() + cells() + outline();
    result.width = std::max(left_ + across(), right_of_labels());
    result.height = top_ + down();
    if (!is_averaged_) return result;
    result.height += text_size;
    result.elements += text_at({left_, result.height}, "averages over blocks of cells", small_text,
                               fmt::format("fill=\"{}\"", soft));
    return result;
  }

 private:
  static constexpr int longest_row_label = 44, longest_column_label = 24;
  static constexpr double with_value = 32;  // the side of a cell that holds its value

  static void abbreviate(std::vector<std::string>& labels, int width) {
    for (std::string& label : labels) label = abbreviated(in_one_line(label), width);
  }

  static double cell_size(std::size_t count) {
    return count <= 12 ? with_value : count <= 24 ? 22 : count <= 48 ? 14 : count <= 80 ? 10 : 7;
  }
  double row_text() const { return std::min(text_size, height_); }
  double column_text() const { return std::min(text_size, width_); }
  double radians() const { return angle_ * std::numbers::pi / 180; }
  double across() const { return width_ * static_cast<double>(columns_); }
  double down() const { return height_ * static_cast<double>(rows_); }
  Point corner(std::size_t r, std::size_t c) const {
    return {left_ + width_ * static_cast<double>(c), top_ + height_ * static_cast<double>(r)};
  }
  Point middle(std::size_t r, std::size_t c) const {
    const auto [x, y] = corner(r, c);
    return {x + width_ / 2, y + height_ / 2};
  }

  double right_of_labels() const {
    double right = 0;
    for (std::size_t c = 0; c < map_.columns.size(); ++c) {
      const double width = text_width(map_.columns[c], column_text());
      right = std::max(right, corner(0, c).x + width_ / 2 +
                                  (angle_ > 0 ? width * std::cos(radians()) : width / 2));
    }
    return right;
  }

  std::string labels() const {
    std::string text;
    for (std::size_t r = 0; r < map_.rows.size(); ++r)
      text += text_at({left_ - 6, middle(r, 0).y + row_text() * 0.35}, map_.rows[r], row_text(),
                      "text-anchor=\"end\"");
    for (std::size_t c = 0; c < map_.columns.size(); ++c) {
      const Point at = {middle(0, c).x, top_ - 6};
      text += text_at(at, map_.columns[c], column_text(),
                      angle_ > 0 ? fmt::format("dy=\".3em\" transform=\"rotate(-{} {} {})\"",
                                               angle_, coordinate(at.x), coordinate(at.y))
                                 : "text-anchor=\"middle\"");
    }
    return text;
  }

  /// What stands in a cell: the value where there is room for it, else the sign of those below 0,
  /// whose colours are as dark as those above.
  std::string inscription(double value) const {
    constexpr double least = 0.02;
    if (std::isnan(value) || height_ < 14) return "";
    if (width_ >= with_value) return short_number(value, scale_.largest);
    return scale_.has_two_signs && value / scale_.largest <= -least ? "−" : "";
  }

  std::string cells() const {
    std::string shades = fmt::format("<g class=\"cells\" stroke=\"#fff\" stroke-width=\"{}\">\n",
                                     width_ >= 14 ? "1" : ".2"),
                texts = "<g class=\"values\" text-anchor=\"middle\">\n";
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::size_t c = 0; c < map_.cells[r].size(); ++c) {
        const double value = map_.cells[r][c];
        const Colour colour =
            std::isnan(value) ? Colour{255, 255, 255} : colour_of(value / scale_.largest, scale_);
        shades += rectangle(corner(r, c), width_, height_, fmt::format("fill=\"{}\"", hex(colour)));
        const std::string text = inscription(value);
        if (text.empty()) continue;
        const bool is_dark =
            0.2126 * colour.red + 0.7152 * colour.green + 0.0722 * colour.blue < 140;
        const auto [x, y] = middle(r, c);
        texts +=
            text_at({x, y + small_text * 0.35}, text, small_text, is_dark ? "fill=\"#fff\"" : "");
      }
    return shades + "</g>\n" + texts + "</g>\n";
  }

  std::string outline() const {
    return rectangle({left_, top_}, across(), down(),
                     fmt::format("fill=\"none\" stroke=\"{}\"", line_colour));
  }

  HeatMap map_;
  bool is_averaged_;
  std::size_t rows_, columns_;
  Scale scale_;
  double width_, height_;      // of a cell
  double left_ = 0, top_ = 0;  // of the cells
  double angle_ = 0;           // at which labels of columns rise, in degrees
};

}  // namespace

Scale scale_of(const HeatMap& map) {
  return {map.largest, map.has_two_signs};
}

Scale scale_of(const Weights& weights) {
  return scale_of(blocks_of(weights).map);
}

Drawing drawn(const HeatMap& map) {
  return MapDrawer(blocks_of(map)).drawing();
}

Drawing drawn(const Weights& weights) {
  return MapDrawer(blocks_of(weights)).drawing();
}

Drawing legend(const Scale& scale) {
  constexpr double height = 10, above = 14, beside = 16;
  const double width = scale.has_two_signs ? 240 : 140, least = scale.has_two_signs ? -1 : 0;
  const auto x = [&](double fraction) { return beside + width * (fraction - least) / (1 - least); };
  Drawing drawing = {"<g class=\"legend\" text-anchor=\"middle\">\n", width + 2 * beside,
                     above + height + small_text * 1.6};
  constexpr int shades = 40;
  for (int i = 0; i < shades; ++i) {
    const double from = least + (1 - least) * i / shades, step = (1 - least) / shades;
    drawing.elements +=
        rectangle({x(from), above}, width / shades + 0.3, height,
                  fmt::format("fill=\"{}\"", hex(colour_of(from + step / 2, scale))));
  }
  for (const double fraction : {-1.0, -0.3, 0.0, 0.3, 1.0})
    if (fraction >= least)
      drawing.elements += text_at({x(fraction), above + height + small_text * 1.2},
                                  tick(fraction * scale.largest, scale.largest), small_text);
  drawing.elements += "</g>\n";
  return drawing;
}

}  // namespace qkv::svg_elements
