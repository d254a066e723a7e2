#include "cli/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/terminal.h"

namespace qkv {
namespace {

/// Where `value` lies among `count` cells from `low` to `high`.
std::size_t cell(double value, double low, double high, int count) {
  const double fraction = high > low ? (value - low) / (high - low) : 0.5;
  return static_cast<std::size_t>(std::clamp(fraction * count, 0.0, count - 1.0));
}

}  // namespace

bool is_numbered(const std::string& label) {
  return label.size() >= 3 && label.front() == '(' && label.back() == ')';
}

std::array<std::array<double, 2>, 2> bounds(const Scatter& scatter) {
  if (scatter.points.empty()) return {};
  std::array<double, 2> low = scatter.points.front(), high = low;
  for (const auto& point : scatter.points)
    for (std::size_t axis = 0; axis < 2; ++axis) {
      low[axis] = std::min(low[axis], point[axis]);
      high[axis] = std::max(high[axis], point[axis]);
    }
  return {low, high};
}

std::string scatter_plot(const Scatter& scatter, int width, int height) {
  const auto& [points, labels, axes] = scatter;
  std::map<std::string, char> marks;
  for (const std::string& label : labels)
    if (!is_numbered(label) && !marks.contains(label) && marks.size() < 26)
      marks.emplace(label, static_cast<char>('a' + marks.size()));
  const auto [low, high] = bounds(scatter);
  std::vector<std::string> grid(static_cast<std::size_t>(height),
                                std::string(static_cast<std::size_t>(width), ' '));
  for (const bool numbered : {false, true})
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (is_numbered(labels[i]) != numbered) continue;
      const std::size_t x = cell(points[i][0], low[0], high[0], width),
                        y = cell(-points[i][1], -high[1], -low[1], height);
      const auto mark = marks.find(labels[i]);
      grid[y][x] = numbered              ? labels[i][labels[i].size() - 2]
                   : mark == marks.end() ? '.'
                                         : mark->second;
    }
  std::string text;
  for (const std::string& line : grid)
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  for (const auto& [label, mark] : marks) text += fmt::format("{}: {}  ", mark, printable(label));
  return marks.empty() ? text : text + "1, 2, ...: the sentences\n";
}

}  // namespace qkv
