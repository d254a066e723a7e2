#include "train/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cwchar>
#include <limits>

namespace qkv {
namespace {

/// Calls `f(code point)` for each character; a malformed byte counts as one character.
template <class F>
void for_each_character(const std::string& text, F f) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t code = lead < 0x80 ? lead : lead & (0x7Fu >> length);
    for (std::size_t j = 1; j < length && i + j < text.size(); ++j)
      code = code << 6 | (static_cast<unsigned char>(text[i + j]) & 0x3Fu);
    f(code);
    i += length;
  }
}

struct Colour {
  double red, green, blue;
};

/// Dark blue over teal to bright yellow, evenly growing in lightness.
Colour shade(double value) {
  static constexpr std::array<Colour, 5> stops = {
      {{30, 20, 70}, {55, 75, 140}, {35, 140, 140}, {110, 200, 95}, {250, 230, 60}}};
  const double position = std::clamp(value, 0.0, 1.0) * (stops.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(position), stops.size() - 2);
  const double t = position - static_cast<double>(i);
  const auto mix = [t](double a, double b) { return a + t * (b - a); };
  const Colour &a = stops[i], &b = stops[i + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

std::string coloured(const std::string& text, double value) {
  const Colour c = shade(value);
  const int ink = value > 0.55 ? 16 : 255;
  return fmt::format("\033[48;2;{:.0f};{:.0f};{:.0f};38;5;{}m{}\033[0m", c.red, c.green, c.blue,
                     ink, text);
}

/// How a number in [0, 1] is written: as it is, in percent, or as its first digit.
enum class Density { full, percent, digit };

int cell_width(Density density) {
  return density == Density::full ? 6 : density == Density::percent ? 4 : 2;
}

std::string cell_text(double value, Density density) {
  if (density == Density::full) return fmt::format(" {:.2f} ", value);
  if (density == Density::percent) return fmt::format("{:3.0f} ", value * 100);
  return fmt::format("{} ", std::min(static_cast<int>(value * 10), 9));
}

int widest(const std::vector<std::string>& texts) {
  int width = 0;
  for (const std::string& text : texts) width = std::max(width, display_width(text));
  return width;
}

}  // namespace

int terminal_width(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

int output_width() {
  return isatty(STDOUT_FILENO) == 1 ? terminal_width(STDOUT_FILENO)
                                    : std::numeric_limits<int>::max();
}

bool colours() {
  const char *no_colour = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
  if (no_colour && *no_colour) return false;
  return isatty(STDOUT_FILENO) == 1 && !(term && std::string_view(term) == "dumb");
}

int display_width(const std::string& text) {
  int width = 0;
  for_each_character(
      text, [&](char32_t code) { width += std::max(wcwidth(static_cast<wchar_t>(code)), 0); });
  return width;
}

std::string pad_left(const std::string& text, int width) {
  return std::string(static_cast<std::size_t>(std::max(width - display_width(text), 0)), ' ') +
         text;
}

std::string pad_right(const std::string& text, int width) {
  return text +
         std::string(static_cast<std::size_t>(std::max(width - display_width(text), 0)), ' ');
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<int> widths(rows.at(0).size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i]));
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows[r].size(); ++i)
      line += i ? "  " + pad_left(rows[r][i], widths[i]) : pad_right(rows[r][i], widths[i]);
    text += line + "\n";
    if (r > 0) continue;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (i) text += "  ";
      for (int j = 0; j < widths[i]; ++j) text += "─";
    }
    text += "\n";
  }
  return text;
}

std::string heat_map(const HeatMap& map, bool colour, int width) {
  const int count = static_cast<int>(map.columns.size());
  int full_width = widest(map.rows) + 1;
  for (const std::string& label : map.columns) full_width += std::max(display_width(label) + 1, 6);
  const int number_width = static_cast<int>(std::to_string(count).size());
  const int margin = widest(map.rows) + number_width + 2;
  const Density density = full_width <= width           ? Density::full
                          : margin + 4 * count <= width ? Density::percent
                                                        : Density::digit;
  const int cell = cell_width(density);
  const auto is_full = density == Density::full;

  std::string text(static_cast<std::size_t>(is_full ? widest(map.rows) + 1 : margin), ' ');
  std::vector<int> gaps;
  for (int c = 0; c < count; ++c) {
    const std::string label = is_full ? map.columns[static_cast<std::size_t>(c)]
                                      : std::to_string(cell == 2 ? (c + 1) % 10 : c + 1);
    const int column = std::max(display_width(label) + 1, cell);
    text += pad_left(label, column - 1) + " ";
    gaps.push_back(column - cell);
  }
  text += "\n";
  for (std::size_t r = 0; r < map.cells.size(); ++r) {
    text += pad_left(map.rows[r], widest(map.rows)) + " ";
    if (!is_full) text += pad_left(std::to_string(r + 1), number_width) + " ";
    for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
      const double value = map.cells[r][c];
      text += std::string(static_cast<std::size_t>(gaps[c]), ' ');
      text += colour ? coloured(cell_text(value, density), value) : cell_text(value, density);
    }
    text += "\n";
  }
  return text;
}

}  // namespace qkv
