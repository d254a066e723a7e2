#include "cli/svg/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace qkv::svg_elements {
namespace {

/// Told apart by people with colour-blindness, and by dashes and shapes in grey.
std::string_view colour_of(std::size_t i) {
  static constexpr std::array<std::string_view, 8> palette = {
      "#4e79d8", "#e8871e", "#2f9e6e", "#d6568f", "#8b6fd6", "#b08a1e", "#3aa6b9", "#c4553b"};
  return palette[i % palette.size()];
}

/// Circle, square, triangle or diamond around a point.
std::string mark(std::size_t i, Point at) {
  static constexpr std::array<std::string_view, 4> shapes = {
      "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "m-3.5-3.5h7v7h-7z", "m0-4.5l4.5 8h-9z",
      "m0-5l4.5 5l-4.5 5l-4.5-5z"};
  return fmt::format("<path d=\"M{} {}{}\" fill=\"{}\" stroke=\"#fff\" stroke-width=\".7\"/>\n",
                     coordinate(at.x), coordinate(at.y), shapes[(i + i / 8) % shapes.size()],
                     colour_of(i));
}

/// The labels of kinds in the order of their first points.
std::vector<std::string> kinds_of(const Scatter& scatter) {
  std::vector<std::string> kinds;
  for (const std::string& label : scatter.labels)
    if (!is_numbered(label) && std::ranges::find(kinds, label) == kinds.end())
      kinds.push_back(label);
  return kinds;
}

/// A sentence's number in a ring.
std::string numbered_mark(Point at, const std::string& label) {
  return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"8\" fill=\"#fff\" stroke=\"{}\"/>\n",
                     coordinate(at.x), coordinate(at.y), ink) +
         text_at({at.x, at.y + 3.5}, label.substr(1, label.size() - 2), small_text,
                 "text-anchor=\"middle\" font-weight=\"bold\"");
}

/// The coordinate at the end of an axis.
std::string end_of_axis(double v) {
  return fmt::format("{}{:.3g}", v < 0 ? "−" : "", std::abs(v));
}

}  // namespace

Drawing drawn(const Curves& curves) {
  const HeatMap& map = curves.values;
  constexpr double left = 36, width = 320, height = 200, top = 8, sample = 26;
  static constexpr std::array<std::string_view, 4> dashes = {"", "6 4", "2 3", "8 3 2 3"};
  double low = 0;
  for (const auto& row : map.cells)
    for (const double value : row)
      if (std::isfinite(value)) low = std::min(low, std::floor(value / map.largest * 4) / 4);
  const auto y = [&](double fraction) { return top + height * (1 - fraction) / (1 - low); };
  const auto x = [&](std::size_t step) {
    return left + width * (static_cast<double>(step) + 0.5) /
                      static_cast<double>(std::max<std::size_t>(map.columns.size(), 1));
  };
  Drawing drawing = {"", left + width, top + height};
  for (double level = low; level <= 1; level += 0.25) {
    drawing.elements += line({left, y(level)}, {left + width, y(level)}, line_colour);
    drawing.elements += text_at({left - 6, y(level) + 4}, tick(level * map.largest, map.largest),
                                small_text, "text-anchor=\"end\"");
  }
  const double room = width / static_cast<double>(std::max<std::size_t>(map.columns.size(), 1));
  const bool fit = widest_text(map.columns, text_size) < room - 6;
  for (std::size_t c = 0; c < map.columns.size(); ++c) {
    const Point at = {x(c), top + height + 16};
    drawing.elements +=
        text_at(at, map.columns[c], text_size,
                fit ? "text-anchor=\"middle\""
                    : fmt::format("text-anchor=\"end\" transform=\"rotate(-45 {} {})\"",
                                  coordinate(at.x), coordinate(at.y)));
  }
  drawing.height += fit ? 24 : 24 + widest_text(map.columns, text_size) * 0.71;
  for (std::size_t r = 0; r < map.cells.size(); ++r) {
    std::string path, marks;
    for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
      const double value = map.cells[r][c] / map.largest;
      if (!std::isfinite(value)) continue;
      const Point at = {x(c), y(value)};
      const bool begins = c == 0 || !std::isfinite(map.cells[r][c - 1]);
      path += fmt::format("{}{} {}", begins ? "M" : "L", coordinate(at.x), coordinate(at.y));
      marks += mark(r, at);
    }
    const std::string stroke =
        fmt::format("stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"", colour_of(r),
                    dashes[r % dashes.size()]);
    const double at = top + 10 + 20 * static_cast<double>(r), from = left + width + 16;
    drawing.elements +=
        fmt::format("<path class=\"line\" d=\"{}\" fill=\"none\" {}/>\n{}", path, stroke, marks);
    drawing.elements += fmt::format("<path d=\"M{} {}h{}\" {}/>\n", coordinate(from),
                                    coordinate(at), sample, stroke) +
                        mark(r, {from + sample / 2, at}) +
                        text_at({from + sample + 6, at + 4}, map.rows[r], text_size);
    drawing.width = std::max(drawing.width, from + sample + 6 + text_width(map.rows[r], text_size));
    drawing.height = std::max(drawing.height, at + 10);
  }
  return drawing;
}

Drawing drawn(const Scatter& scatter) {
  constexpr double left = 24, width = 400, height = 300, inset = 14;
  const auto limits = bounds(scatter);
  const auto fraction = [&](std::size_t i, std::size_t axis) {
    const double low = limits[0][axis], high = limits[1][axis];
    return high > low ? (scatter.points[i][axis] - low) / (high - low) : 0.5;
  };
  const auto at = [&](std::size_t i) {
    return Point{left + inset + (width - 2 * inset) * fraction(i, 0),
                 height - inset - (height - 2 * inset) * fraction(i, 1)};
  };
  Drawing drawing = {
      rectangle({left, 0}, width, height, fmt::format("fill=\"none\" stroke=\"{}\"", line_colour)),
      left + width, height + 40};
  const auto kinds = kinds_of(scatter);
  std::string points, numbers;
  for (std::size_t i = 0; i < scatter.points.size(); ++i) {
    const std::string& label = scatter.labels[i];
    if (is_numbered(label))
      numbers += numbered_mark(at(i), label);
    else
      points +=
          mark(static_cast<std::size_t>(std::ranges::find(kinds, label) - kinds.begin()), at(i));
  }
  drawing.elements += fmt::format("<g class=\"points\">\n{}{}</g>\n", points, numbers);
  for (const std::size_t end : {0u, 1u}) {
    const double far = static_cast<double>(end);
    const std::string anchor = fmt::format("text-anchor=\"{}\"", end ? "end" : "start");
    drawing.elements +=
        text_at({left + width * far, height + 16}, end_of_axis(limits[end][0]), small_text, anchor);
    const Point upright = {left - 8, height * (1 - far)};
    drawing.elements += text_at(upright, end_of_axis(limits[end][1]), small_text,
                                fmt::format("{} transform=\"rotate(-90 {} {})\"", anchor,
                                            coordinate(upright.x), coordinate(upright.y)));
  }
  drawing.elements += text_at({left + width / 2, height + 18}, scatter.axes[0], text_size,
                              "text-anchor=\"middle\"");
  drawing.elements += text_at({left - 8, height / 2}, scatter.axes[1], text_size,
                              fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 {} {})\"",
                                          coordinate(left - 8), coordinate(height / 2)));
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const Point name = {left + width + 30, 14 + 20 * static_cast<double>(k)};
    drawing.elements += mark(k, {name.x - 12, name.y - 4}) + text_at(name, kinds[k], text_size);
    drawing.width = std::max(drawing.width, name.x + text_width(kinds[k], text_size));
    drawing.height = std::max(drawing.height, name.y + 10);
  }
  return drawing;
}

}  // namespace qkv::svg_elements
