#include "cli/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "cli/drawing.h"
#include "datasets/text.h"
#include "inspect/block_average.h"

namespace qkv {
namespace {

constexpr std::string_view beginning_of_svg = "<!-- A picture that qkv drew -->\n<svg ";
constexpr std::string_view frame = "fill=\"none\" stroke=\"#c8c8ce\"", soft = "fill=\"#6e6e73\"";
constexpr Index most_cells = 128;  // in a row or column

struct Scale {
  double largest;
  bool has_two_signs;

  bool operator==(const Scale&) const = default;
};

/// A picture without its title; maps have a scale.
struct Body {
  Drawing drawing;
  std::optional<Scale> scale = {};
};

/// The shade of a fraction of the largest value: larger is darker, and small values differ most.
Colour shade(double fraction, bool has_two_signs) {
  static constexpr std::array<Colour, 5> one_sign = {
      {{245, 245, 250}, {199, 210, 254}, {129, 140, 248}, {67, 56, 202}, {30, 27, 75}}};
  static constexpr std::array<Colour, 5> two_signs = {
      {{30, 64, 175}, {96, 165, 250}, {248, 248, 251}, {248, 113, 113}, {153, 27, 27}}};
  if (std::isnan(fraction)) return {255, 255, 255};
  const double raised = std::pow(std::min(std::abs(fraction), 1.0), 0.7);
  if (has_two_signs) return between(two_signs, (1 + std::copysign(raised, fraction)) / 2);
  return between(one_sign, fraction > 0 ? raised : 0);
}

/// A cell with its value where there is room for it, else with the sign of values below 0, whose
/// shades are as dark as those above.
void add_cell(Drawing& shades, Drawing& values, Point corner, double width, double height,
              double value, const Scale& scale) {
  constexpr double with_value = 32, with_sign = 14, least = 0.02;
  const Colour c = shade(value / scale.largest, scale.has_two_signs);
  shades.rect(corner, width, height,
              fmt::format("fill=\"#{:02x}{:02x}{:02x}\"", std::lround(c.red), std::lround(c.green),
                          std::lround(c.blue)));
  std::string text;
  if (std::min(width, height) >= with_value)
    text = trimmed(value_text(value));
  else if (height >= with_sign && scale.has_two_signs && value / scale.largest <= -least)
    text = "−";
  if (text.empty() || std::isnan(value)) return;
  const bool is_dark = 0.2126 * c.red + 0.7152 * c.green + 0.0722 * c.blue < 140;
  values.text({corner.x + width / 2, corner.y + height / 2 + small_text / 3}, text, small_text,
              "middle", is_dark ? "fill=\"#fff\"" : "");
}

double cell_size(std::size_t count) {
  return count <= 12 ? 32 : count <= 24 ? 22 : count <= 48 ? 14 : count <= 80 ? 10 : 7;
}

Body drawn_map(const HeatMap& map) {
  const std::size_t columns = map.cells.empty() ? 0 : map.cells[0].size();
  const double width = cell_size(columns), height = std::min(cell_size(map.cells.size()), width);
  const auto at = [&](double c, double r) { return Point{width * c, height * r}; };
  Drawing shades, values, drawing;
  for (std::size_t r = 0; r < map.cells.size(); ++r)
    for (std::size_t c = 0; c < columns; ++c)
      add_cell(shades, values, at(static_cast<double>(c), static_cast<double>(r)), width, height,
               map.cells[r][c], {map.largest, map.has_two_signs});
  drawing.add(shades, {0, 0}, "class=\"cells\" stroke=\"#fff\" stroke-width=\".5\"");
  drawing.rect({0, 0}, shades.width(), shades.height(), frame);
  drawing.add(values, {0, 0}, "class=\"values\"");
  const auto rows = abbreviated(map.rows, 40), names = abbreviated(map.columns, 40);
  for (std::size_t r = 0; r < rows.size(); ++r)
    drawing.text({-6, at(0, static_cast<double>(r) + 0.5).y + text_size / 3}, rows[r],
                 std::min(text_size, height), "end");
  const double size = std::min(text_size, width);
  const bool fit = std::ranges::all_of(
      names, [&](const std::string& name) { return text_width(name, size) < width - 3; });
  for (std::size_t c = 0; c < names.size(); ++c)
    drawing.text({at(static_cast<double>(c) + 0.5, 0).x + (fit ? 0 : size / 3), -6}, names[c], size,
                 fit ? "middle" : "start", "", !fit);
  return {drawing, Scale{map.largest, map.has_two_signs}};
}

/// Block averages of a matrix with too many values to show each.
Body drawn_blocks(const Tensor& matrix, const Scale& scale) {
  const Tensor blocks = block_average(matrix, most_cells, most_cells);
  Body body = drawn_map(HeatMap{rows_of(blocks), {}, {}, scale.largest, scale.has_two_signs});
  if (blocks.size() < matrix.size())
    body.drawing.text({0, body.drawing.height() + text_size}, "averages over blocks of cells",
                      small_text, "start", soft);
  return body;
}

Body drawn(const Weights& weights) {
  return drawn_blocks(weights.values, {largest_absolute({weights.values.values()}), true});
}

Body drawn(const HeatMap& map) {
  const Index rows = std::ssize(map.cells), columns = rows ? std::ssize(map.cells[0]) : 0;
  if (std::max(rows, columns) <= most_cells) return drawn_map(map);
  std::vector<double> values;
  for (const auto& row : map.cells) values.insert(values.end(), row.begin(), row.end());
  return drawn_blocks(Tensor::from(values, {rows, columns}, DType::float64),
                      {map.largest, map.has_two_signs});
}

Body drawn(const Scatter& scatter) {
  constexpr double width = 400, height = 300, inset = 14;
  static constexpr std::array<std::string_view, 8> colours = {
      "#4e79d8", "#e8871e", "#2f9e6e", "#d6568f", "#8b6fd6", "#b08a1e", "#3aa6b9", "#c4553b"};
  const auto limits = bounds(scatter);
  const auto place = [&](std::size_t i, std::size_t axis, double length) {
    const double low = limits[0][axis], high = limits[1][axis];
    const double fraction = high > low ? (scatter.points[i][axis] - low) / (high - low) : 0.5;
    return inset + (length - 2 * inset) * fraction;
  };
  std::vector<std::string> kinds;
  Drawing points, numbers, drawing;
  const auto add_mark = [&](Drawing& on, std::size_t kind,
                            Point at) {  // hollow ones differ in grey
    const std::string_view colour = colours[kind % colours.size()];
    on.circle(at, 4, fmt::format("fill=\"{}\" stroke=\"{}\"", kind % 2 ? "#fff" : colour, colour));
  };
  for (std::size_t i = 0; i < scatter.points.size(); ++i) {
    const std::string& label = scatter.labels[i];
    const Point at = {place(i, 0, width), height - place(i, 1, height)};
    if (is_numbered(label)) {
      numbers.circle(at, 8, "fill=\"#fff\" stroke=\"#1d1d1f\"");
      numbers.text({at.x, at.y + 3.5}, label.substr(1, label.size() - 2), small_text, "middle");
      continue;
    }
    const auto kind = std::ranges::find(kinds, label) - kinds.begin();
    if (kind == std::ssize(kinds)) kinds.push_back(label);
    add_mark(points, static_cast<std::size_t>(kind), at);
  }
  drawing.rect({0, 0}, width, height, frame);
  drawing.add(points, {0, 0}, "class=\"points\"");
  drawing.add(numbers, {0, 0}, "class=\"numbers\"");
  drawing.text({width / 2, height + 18}, scatter.axes[0], text_size, "middle");
  drawing.text({-8, height / 2}, scatter.axes[1], text_size, "middle", "", true);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const double y = 14 + 20 * static_cast<double>(k);
    add_mark(drawing, k, {width + 18, y - 4});
    drawing.text({width + 30, y}, kinds[k]);
  }
  return {drawing};
}

constexpr double curve_width = 480, curve_height = 300;

Body drawn(const Curve& curve) {
  constexpr std::string_view point_style = "fill=\"#9a9aa2\"", mark_style = "fill=\"#c4553b\"",
                             line_style = "fill=\"none\" stroke=\"#4e79d8\" stroke-width=\"2\"";
  const Frame axes = frame_of(curve, curve_width, curve_height);
  Drawing drawing = axes.drawing("stroke=\"#e8e8ec\""), points;
  drawing.rect({0, 0}, curve_width, curve_height, frame);
  std::vector<Point> line;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    points.circle(axes.at(curve.x[i], curve.points[i]), 1.5, point_style);
    line.push_back(axes.at(curve.x[i], curve.line[i]));
  }
  drawing.add(points, points.corner(), "class=\"points\"");
  drawing.line(line, line_style);
  if (curve.mark) drawing.circle(line[*curve.mark], 5, mark_style);
  auto explain = [&, y = 14.0](const std::string& name, double radius,
                               std::string_view style) mutable {
    drawing.circle({curve_width + 18, y - 4}, radius, style);
    drawing.text({curve_width + 30, y}, name);
    y += 20;
  };
  explain(curve.points_name, 1.5, point_style);
  explain(curve.line_name, 3, "fill=\"#4e79d8\"");
  if (curve.mark) explain(curve.mark_name, 5, mark_style);
  return {drawing};
}

/// Some values from the least to the largest with their shades.
Drawing legend(const Scale& scale) {
  constexpr double size = 32;
  Drawing shades, values, drawing;
  for (const double fraction : {-1.0, -0.6, -0.3, -0.1, 0.0, 0.1, 0.3, 0.6, 1.0})
    if (fraction >= 0 || scale.has_two_signs)
      add_cell(shades, values, {shades.width(), 0}, size, size, fraction * scale.largest, scale);
  drawing.add(shades, {0, 0});
  drawing.add(values, {0, 0});
  return drawing;
}

/// A heading, the part of the title before its colon above the rest, and the picture below it.
Drawing panel(const std::string& title, const Body& body) {
  const auto colon = std::min(title.find(": "), title.size());
  Drawing drawing;
  drawing.add(fmt::format("<title>{}</title>\n", xml(title)));
  drawing.text({0, text_size}, title.substr(0, colon), text_size, "start", "font-weight=\"bold\"");
  if (colon < title.size())
    drawing.text({0, 2.2 * text_size}, title.substr(colon + 2), small_text, "start", soft);
  drawing.add(body.drawing, {0, drawing.height() + 8});
  return drawing;
}

}  // namespace

std::string svg(const std::string& title, const std::vector<Picture>& pictures) {
  constexpr double margin = 16, gap = 28, widest_row = 1280;
  Drawing page;
  Point corner = {0, 0};
  const auto place = [&](const Drawing& drawing, bool begins_row, std::string_view attributes) {
    if (begins_row || corner.x + drawing.width() > widest_row) corner = {0, page.height() + gap};
    page.add(drawing, corner, attributes);
    corner.x += drawing.width() + gap;
  };
  std::vector<Scale> scales;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const Body body =
        std::visit([](const auto& content) { return drawn(content); }, pictures[i].content);
    place(panel(pictures[i].title, body), i > 0 && pictures[i].begins_row, "");
    if (body.scale && std::ranges::find(scales, *body.scale) == scales.end())
      scales.push_back(*body.scale);
  }
  for (const Scale& scale : scales)
    place(legend(scale), &scale == &scales.front(), "class=\"legend\"");
  return fmt::format(
      "{0}xmlns=\"http://www.w3.org/2000/svg\" width=\"{1:.0f}\" height=\"{2:.0f}\" "
      "viewBox=\"-{3} -{3} {1:.0f} {2:.0f}\" role=\"img\" "
      "font-family=\"Helvetica, Arial, sans-serif\" fill=\"#1d1d1f\">\n<title>{4}</title>\n"
      "<rect x=\"-{3}\" y=\"-{3}\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{5}</svg>\n",
      beginning_of_svg, std::ceil(page.width() + 2 * margin), std::ceil(page.height() + 2 * margin),
      margin, xml(title), page.elements());
}

bool begins_as_svg(std::string_view beginning) {
  return beginning.starts_with(beginning_of_svg);
}

}  // namespace qkv
