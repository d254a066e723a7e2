#include "cli/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "inspect/block_average.h"

namespace qkv {
namespace {

/// Grey to red at about equal lightness: larger values stand out on dark and bright terminals.
Colour shade(double value) {
  static constexpr std::array<Colour, 4> stops = {
      {{118, 118, 124}, {165, 105, 85}, {205, 90, 45}, {235, 75, 10}}};
  return between(stops, value);
}

/// Blue at -1 over grey at 0 to red at 1.
Colour diverging(double value) {
  static constexpr std::array<Colour, 5> stops = {
      {{30, 100, 225}, {75, 110, 175}, {118, 118, 118}, {185, 95, 85}, {225, 50, 40}}};
  return between(stops, (value + 1) / 2);
}

/// The nearest of the 16 colours of a console: bits 0 to 2 are red, green and blue, bit 3 is
/// bright.
int nearest_basic(const Colour& c) {
  const auto distance = [&](int basic) {
    const auto square = [&](double value, int bit) {
      const double level = 170.0 * (basic >> bit & 1) + 85.0 * (basic >> 3);
      return (value - level) * (value - level);
    };
    return square(c.red, 0) + square(c.green, 1) + square(c.blue, 2);
  };
  int nearest = 0;
  for (int basic = 1; basic < 16; ++basic)
    if (distance(basic) < distance(nearest)) nearest = basic;
  return nearest;
}

/// The escape parameters of one of the 16 colours: `layer` 38 is the text, 48 its background.
std::string sgr(int layer, int basic) {
  return fmt::format("{}", basic < 8 ? layer - 8 + basic : layer + 52 + basic - 8);
}

std::string sgr(int layer, const Colour& c, Colours colours) {
  if (colours == Colours::full)
    return fmt::format("{};2;{:.0f};{:.0f};{:.0f}", layer, c.red, c.green, c.blue);
  if (colours == Colours::basic) return sgr(layer, nearest_basic(c));
  const auto level = [](double v) { return static_cast<int>(std::lround(v / 255 * 5)); };
  return fmt::format("{};5;{}", layer, 16 + 36 * level(c.red) + 6 * level(c.green) + level(c.blue));
}

/// How a value is written: with two decimals, in percent of the largest, or in tenths of it up to 9
/// with a dot below one and a minus below 0.
enum class Density { full = 6, percent = 4, spaced_digit = 2, digit = 1 };

std::string cell_text(double value, double largest, Density density) {
  if (std::isnan(value)) return "";
  if (density == Density::full) return value_text(value);
  const double fraction = value / largest;
  if (density == Density::percent) return fmt::format("{:3.0f} ", fraction * 100);
  const int tenths = static_cast<int>(std::clamp(fraction * 10, 0.0, 9.0));
  const char digit = fraction <= -0.1 ? '-' : tenths ? static_cast<char>('0' + tenths) : '.';
  return fmt::format("{}{}", digit, density == Density::digit ? "" : " ");
}

/// A cell of `width` columns, shaded to its edges; values near 0 have no shade.
std::string cell(double value, double largest, Density density, int width, Colours colours) {
  constexpr double least_shaded = 0.02;
  const std::string text = pad_left(cell_text(value, largest, density), width);
  const double fraction = value / largest;
  if (colours == Colours::none || !(std::abs(fraction) >= least_shaded)) return text;
  const Colour background = fraction < 0 ? diverging(fraction) : shade(fraction);
  const bool black = fraction > 0.4;
  const std::string ink = colours == Colours::basic ? sgr(38, black ? 0 : 15)
                                                    : fmt::format("38;5;{}", black ? 16 : 255);
  return fmt::format("\033[{};{}m{}\033[0m", sgr(48, background, colours), ink, text);
}

int widest(const std::vector<std::string>& texts) {
  int width = 0;
  for (const std::string& text : texts) width = std::max(width, display_width(text));
  return width;
}

/// Width of a column with a name, its gap included.
int named_width(const std::string& label) {
  return std::max(display_width(label) + 1, static_cast<int>(Density::full));
}

int named_width(const HeatMap& map) {
  int width = widest(map.rows) + 1;
  for (const std::string& label : map.columns) width += named_width(label);
  return width;
}

std::string named_map(const HeatMap& map, Colours colours) {
  const int margin = widest(map.rows) + 1;
  std::string text = pad_left("", margin);
  for (const std::string& label : map.columns)
    text += pad_left(label, named_width(label) - 1) + " ";
  text += "\n";
  for (std::size_t r = 0; r < map.cells.size(); ++r) {
    text += pad_left(map.rows[r], margin - 1) + " ";
    for (std::size_t c = 0; c < map.cells[r].size(); ++c)
      text +=
          cell(map.cells[r][c], map.largest, Density::full, named_width(map.columns[c]), colours);
    text += "\n";
  }
  return text;
}

/// Columns [begin, end), numbered.
std::string numbered_map(const HeatMap& map, std::size_t begin, std::size_t end, Density density,
                         Colours colours) {
  const int number_width = static_cast<int>(std::to_string(map.rows.size()).size());
  const int labels = widest(map.rows), width = static_cast<int>(density);
  std::string tens, ones;
  for (std::size_t c = begin + 1; c <= end; ++c) {
    const bool round = c % 10 == 0 || (c == begin + 1 && begin > 0);
    tens += pad_right(round ? std::to_string(c / 10 % 10) : "", width);
    ones += density == Density::percent ? pad_left(std::to_string(c), 3) + " "
                                        : pad_right(std::to_string(c % 10), width);
  }
  const std::string margin = pad_left("", labels + number_width + 2);
  std::string text;
  if (density != Density::percent && end > 9) text += margin + tens + "\n";
  text += margin + ones + "\n";
  for (std::size_t r = 0; r < map.cells.size(); ++r) {
    text +=
        pad_left(map.rows[r], labels) + " " + pad_left(std::to_string(r + 1), number_width) + " ";
    for (std::size_t c = begin; c < end; ++c)
      text += cell(map.cells[r][c], map.largest, density, width, colours);
    text += "\n";
  }
  return text;
}

}  // namespace

Colour between(std::span<const Colour> stops, double position) {
  const double scaled = std::clamp(position, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(scaled), stops.size() - 2);
  const double t = scaled - static_cast<double>(i);
  const auto mix = [t](double a, double b) { return a + t * (b - a); };
  const Colour &a = stops[i], &b = stops[i + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

std::vector<std::vector<double>> rows_of(const Tensor& matrix) {
  const auto values = matrix.values();
  const auto columns = static_cast<std::ptrdiff_t>(matrix.dim(1));
  std::vector<std::vector<double>> rows;
  for (auto row = values.begin(); row != values.end(); row += columns)
    rows.emplace_back(row, row + columns);
  return rows;
}

double largest_absolute(const std::vector<std::vector<double>>& cells) {
  double largest = 0;
  for (const auto& row : cells)
    for (const double value : row)
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return largest > 0 ? largest : 1;
}

std::string value_text(double value) {
  const double size = std::abs(value);
  return size < 99.995   ? fmt::format("{:5.2f} ", value)
         : size < 9999.5 ? fmt::format("{:5.0f} ", value)
                         : fmt::format("{:>5.0e} ", value);
}

std::string heat_map(const HeatMap& unabbreviated, Colours colours, int width) {
  constexpr int longest_row = 16;
  HeatMap map = unabbreviated;
  if (named_width(map) > width) map.rows = abbreviated(unabbreviated.rows, longest_row);
  for (const int longest : {16, 12, 10, 8, 6, 5}) {
    if (named_width(map) <= width) return named_map(map, colours);
    map.columns = abbreviated(unabbreviated.columns, longest);
  }
  const int count = static_cast<int>(map.columns.size());
  const int margin = widest(map.rows) + static_cast<int>(std::to_string(count).size()) + 2;
  const int room = std::max(width - margin, 10);
  Density density = Density::digit;
  for (const Density fitting : {Density::spaced_digit, Density::percent})
    if (static_cast<int>(fitting) * count <= room) density = fitting;
  const auto columns = static_cast<std::size_t>(room / static_cast<int>(density));
  std::string text;
  for (std::size_t begin = 0; begin < map.columns.size(); begin += columns) {
    const std::size_t end = std::min(begin + columns, map.columns.size());
    if (begin) text += "\n";
    text += numbered_map(map, begin, end, density, colours);
  }
  return text;
}

std::string weight_map(const Tensor& matrix, Colours colours, int width) {
  const Tensor map = block_average(matrix, 64, std::min(width, 160));
  const auto values = map.values();
  const Index rows = map.dim(0), columns = map.dim(1);
  const double largest = largest_absolute({values});
  const auto colour = [&](Index r, Index c) {
    return diverging(values[static_cast<std::size_t>(r * columns + c)] / largest);
  };
  std::string text;
  for (Index r = 0; r < rows; r += 2) {
    for (Index c = 0; c < columns; ++c) {
      text += fmt::format("\033[{}", sgr(38, colour(r, c), colours));
      if (r + 1 < rows) text += fmt::format(";{}", sgr(48, colour(r + 1, c), colours));
      text += "m▀\033[0m";
    }
    text += "\n";
  }
  return text;
}

std::string spark_line(const std::vector<Index>& counts) {
  static constexpr std::array<const char*, 9> bars = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const Index largest = std::max<Index>(counts.empty() ? 0 : std::ranges::max(counts), 1);
  std::string text;
  for (const Index count : counts)
    text += bars[static_cast<std::size_t>((count * 8 + largest - 1) / largest)];
  return text;
}

}  // namespace qkv
