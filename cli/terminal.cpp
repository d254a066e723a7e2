#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cwchar>
#include <limits>
#include <string_view>

#include "datasets/text.h"

namespace qkv {
namespace {

/// A byte that is not UTF-8 has the width of U+FFFD.
int character_width(std::string_view character) {
  if (character.size() == 1 && character[0] >= ' ' && character[0] <= '~') return 1;
  const CodePoint point = first_code_point(character);
  const int width = point.length > 0 ? wcwidth(static_cast<wchar_t>(point.code)) : 1;
  return width < 0 ? 1 : width;  // -1: not known to the locale
}

std::string padding(const std::string& text, int width) {
  return std::string(static_cast<std::size_t>(std::max(width - display_width(text), 0)), ' ');
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
  if (depth == "truecolor" || depth == "24bit") return Colours::full;
  static constexpr std::array<std::string_view, 5> of_16_colours = {"linux", "ansi", "cygwin",
                                                                    "screen", "rxvt"};
  return std::ranges::find(of_16_colours, term) == of_16_colours.end() ? Colours::indexed
                                                                       : Colours::basic;
}

int display_width(const std::string& text) {
  int width = 0;
  for_each_character(text, [&](std::string_view c) { width += character_width(c); });
  return width;
}

std::string pad_left(const std::string& text, int width) {
  return padding(text, width) + text;
}

std::string pad_right(const std::string& text, int width) {
  return text + padding(text, width);
}

std::string abbreviated(const std::string& text, int width) {
  if (display_width(text) <= width) return text;
  std::vector<std::string> characters;  // each with its combining marks
  for_each_character(text, [&](std::string_view c) {
    if (character_width(c) == 0 && !characters.empty())
      characters.back() += c;
    else
      characters.emplace_back(c);
  });
  std::string head, tail;
  for (std::size_t begin = 0, end = characters.size(); begin < end;) {
    const int head_width = display_width(head), tail_width = display_width(tail);
    const bool at_head = head_width <= tail_width;
    const std::string& next = characters[at_head ? begin : end - 1];
    if (head_width + tail_width + display_width(next) >= width) break;  // the ellipsis takes one
    if (at_head)
      head += characters[begin++];
    else
      tail.insert(0, characters[--end]);
  }
  return head + "…" + tail;
}

std::vector<std::string> abbreviated(std::vector<std::string> texts, int width) {
  for (std::string& text : texts) text = abbreviated(text, width);
  return texts;
}

}  // namespace qkv
