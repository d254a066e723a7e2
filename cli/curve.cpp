#include "cli/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/terminal.h"

namespace qkv {
namespace {

constexpr int margin = 8;  // columns of the vertical axis

/// Rows of columns of characters.
using Grid = std::vector<std::vector<std::string>>;

/// The nearest of `count` cells.
std::size_t nearest(double fraction, std::size_t count) {
  return static_cast<std::size_t>(std::lround(fraction * static_cast<double>(count - 1)));
}

/// The horizontal axis with its ticks, and their labels below.
std::string horizontal_axis(const Axis& axis, std::size_t width) {
  std::string line, labels;
  std::vector<bool> is_tick(width);
  for (const auto& [position, label] : axis.ticks()) {
    const std::size_t column = nearest(position, width);
    const std::size_t begin = std::min(column, width - label.size());
    is_tick[column] = true;
    if (!labels.empty() && begin <= labels.size()) continue;
    labels.resize(begin, ' ');
    labels += label;
  }
  for (const bool tick : is_tick) line += tick ? "┴" : "─";
  const std::string indent(margin - 1, ' ');
  return fmt::format("{}└{}\n{} {}\n", indent, line, indent, labels);
}

/// The lines of a grid behind the vertical axis with its values.
std::string with_vertical_axis(const Axis& axis, const Grid& grid) {
  std::vector<std::string> labels(grid.size());
  for (const auto& [position, label] : axis.ticks())
    labels[nearest(1 - position, grid.size())] = label;
  std::string text;
  for (std::size_t row = 0; row < grid.size(); ++row) {
    std::string line = pad_left(labels[row], margin - 2) + (labels[row].empty() ? " │" : " ┤");
    for (const std::string& cell : grid[row]) line += cell;
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string legend_of(const Curve& curve) {
  std::string text = fmt::format("{}→ {}   · {}   • {}", std::string(margin, ' '), curve.axis,
                                 curve.points_name, curve.line_name);
  if (curve.mark) text += "   ◆ " + curve.mark_name;
  return text + "\n";
}

}  // namespace

Frame frame_of(const Curve& curve, double width, double height) {
  constexpr double room = 1.25;
  const auto& [x, points, line, mark, axis, points_name, line_name, mark_name] = curve;
  const auto least = std::ranges::min_element(line);
  const double before =
      std::max(*std::max_element(points.begin(), points.begin() + (least - line.begin() + 1)),
               *std::max_element(line.begin(), least + 1));
  const std::array range = {
      std::min(std::ranges::min(points), *least),
      std::min(room * before, std::max(std::ranges::max(points), std::ranges::max(line)))};
  return {Axis::of_numbers(axis, x, true), Axis::of_numbers("", range), width, height};
}

std::string curve_plot(const Curve& curve, int width, int height) {
  const auto [x, y, right, up] = frame_of(curve, 1, 1);
  const auto columns = static_cast<std::size_t>(std::max(width - margin, 10));
  Grid grid(static_cast<std::size_t>(height), std::vector<std::string>(columns, " "));
  const auto draw = [&, &x = x, &y = y](std::size_t i, const std::vector<double>& values,
                                        const char* sign) {
    const std::size_t row = nearest(1 - y.at(values[i]), grid.size());
    grid[row][nearest(x.at(curve.x[i]), columns)] = sign;
  };
  for (std::size_t i = 0; i < curve.x.size(); ++i) draw(i, curve.points, "·");
  for (std::size_t i = 0; i < curve.x.size(); ++i) draw(i, curve.line, "•");
  if (curve.mark) draw(*curve.mark, curve.line, "◆");
  return with_vertical_axis(y, grid) + horizontal_axis(x, columns) + legend_of(curve);
}

}  // namespace qkv
