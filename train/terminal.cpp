#include "train/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cwchar>

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

std::string cell(double value, bool colour) {
  const std::string text = fmt::format(" {:.2f} ", value);
  if (!colour) return text;
  const Colour c = shade(value);
  const int ink = value > 0.55 ? 16 : 255;
  return fmt::format("\033[48;2;{:.0f};{:.0f};{:.0f};38;5;{}m{}\033[0m", c.red, c.green, c.blue,
                     ink, text);
}

}  // namespace

int terminal_width(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
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

std::string heat_map(const std::vector<std::vector<double>>& cells,
                     const std::vector<std::string>& row_labels,
                     const std::vector<std::string>& column_labels, bool colour) {
  int margin = 0;
  for (const std::string& label : row_labels) margin = std::max(margin, display_width(label));
  std::vector<int> widths;
  std::string text(static_cast<std::size_t>(margin) + 1, ' ');
  for (const std::string& label : column_labels) {
    widths.push_back(std::max(display_width(label) + 1, 6));
    text += pad_left(label, widths.back() - 1) + " ";
  }
  text += "\n";
  for (std::size_t r = 0; r < cells.size(); ++r) {
    text += pad_left(row_labels[r], margin) + " ";
    for (std::size_t c = 0; c < cells[r].size(); ++c)
      text += std::string(static_cast<std::size_t>(widths[c] - 6), ' ') + cell(cells[r][c], colour);
    text += "\n";
  }
  return text;
}

}  // namespace qkv
