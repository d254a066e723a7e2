#include "train/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cwchar>
#include <limits>
#include <string_view>

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

}  // namespace

int terminal_width(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

int output_width() {
  return isatty(STDOUT_FILENO) == 1 ? terminal_width(STDOUT_FILENO)
                                    : std::numeric_limits<int>::max();
}

Colours colours() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value ? value : "");
  };
  const std::string_view term = variable("TERM"), depth = variable("COLORTERM");
  if (isatty(STDOUT_FILENO) != 1 || !variable("NO_COLOR").empty()) return Colours::none;
  if (term.empty() || term == "dumb" || term.starts_with("vt")) return Colours::none;
  return depth == "truecolor" || depth == "24bit" ? Colours::full : Colours::indexed;
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

}  // namespace qkv
