#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cwchar>
#include <limits>
#include <map>
#include <string_view>

#include "datasets/text.h"

namespace qkv {
namespace {

constexpr char32_t replacement = 0xFFFD;

/// Of one character; a byte that is not UTF-8 counts as U+FFFD.
char32_t code_point(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes[0]);
  if (bytes.size() == 1) return lead < 0x80 ? lead : replacement;
  char32_t code = lead & (0x7Fu >> bytes.size());
  for (const char c : bytes.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return code;
}

int character_width(char32_t code) {
  const int width = wcwidth(static_cast<wchar_t>(code));
  return width < 0 ? 1 : width;  // -1: not known to the locale
}

/// A picture of a control character, and U+FFFD for what has none; empty for other characters.
std::string sign_of(char32_t code) {
  if (code < 0x20) return {'\xE2', '\x90', static_cast<char>(0x80 + code)};  // U+2400 and following
  if (code == 0x7F) return "␡";
  return (code >= 0x80 && code < 0xA0) || code == replacement ? "\xEF\xBF\xBD" : "";
}

/// `text` with the given signs in place of some characters, and signs of all control characters
/// that are not in `kept`.
std::string with_signs(std::string_view text,
                       const std::map<std::string_view, std::string_view>& signs,
                       std::string_view kept = "") {
  std::string result;
  for_each_character(text, [&](std::string_view c) {
    const auto given = signs.find(c);
    const std::string sign = given != signs.end()        ? std::string(given->second)
                             : kept.find(c) != kept.npos ? ""
                                                         : sign_of(code_point(c));
    result += sign.empty() ? c : sign;
  });
  return result;
}

/// Ends of lines and tabs as signs, too, so that they cannot tear a table.
std::string in_one_line(std::string_view text) {
  return with_signs(text, {{"\n", "↵"}, {"\t", "⇥"}});
}

/// "0.5", "-inf", "12%", "3.2 ms", "0.5 ± 0.1", or a placeholder of a missing value.
bool is_number(const std::string& text) {
  constexpr std::string_view plus_minus = " ± ";
  if (const auto at = text.find(plus_minus); at != text.npos)
    return is_number(text.substr(0, at)) && is_number(text.substr(at + plus_minus.size()));
  static constexpr std::array<std::string_view, 4> units = {"", "%", " ms", " MiB"};
  if (text.empty() || text == "-") return true;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() &&
         std::ranges::find(units, std::string_view(rest, end)) != units.end();
}

/// Columns [begin, end) of all rows, the first column before them where it is not among them.
Rows part_of(const Rows& rows, std::size_t begin, std::size_t end) {
  Rows part;
  for (const auto& row : rows) {
    part.push_back({row.front()});
    const auto first = row.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(begin, 1));
    part.back().insert(part.back().end(), first, row.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return part;
}

struct Column {
  int width = 0;
  bool numeric = true;
};

std::vector<Column> columns_of(const Rows& rows) {
  std::vector<Column> columns(rows.at(0).size());
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      columns[i].width = std::max(columns[i].width, display_width(rows[r][i]));
      columns[i].numeric = columns[i].numeric && (r == 0 || is_number(rows[r][i]));
    }
  return columns;
}

constexpr int gap = 2;

int total_width(const std::vector<Column>& columns) {
  int width = -gap;
  for (const Column& column : columns) width += column.width + gap;
  return width;
}

/// Makes the widest columns of text narrower until the table fits; false when that is not enough.
bool narrowed(std::vector<Column>& columns, int width) {
  constexpr int least = 24;
  std::vector<Column> narrow = columns;
  for (int excess = total_width(narrow) - width; excess > 0; --excess) {
    const auto widest = std::ranges::max_element(
        narrow, {}, [](const Column& c) { return c.numeric ? 0 : c.width; });
    if (widest->numeric || widest->width <= least) return false;
    --widest->width;
  }
  columns = narrow;
  return true;
}

std::string drawn(const Rows& rows, const std::vector<Column>& columns) {
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      const auto [width, numeric] = columns[i];
      const std::string cell = abbreviated(rows[r][i], width);
      if (i) line.append(gap, ' ');
      line += numeric ? pad_left(cell, width) : pad_right(cell, width);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (r > 0) continue;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i) text.append(gap, ' ');
      for (int j = 0; j < columns[i].width; ++j) text += "─";
    }
    text += "\n";
  }
  return text;
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
  for_each_character(text, [&](std::string_view c) { width += character_width(code_point(c)); });
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

std::string abbreviated(const std::string& text, int width) {
  if (display_width(text) <= width) return text;
  std::vector<std::string> characters;  // each with its combining marks
  std::vector<int> widths;
  for_each_character(text, [&](std::string_view c) {
    const int columns = character_width(code_point(c));
    if (columns == 0 && !characters.empty()) {
      characters.back() += c;
    } else {
      characters.emplace_back(c);
      widths.push_back(columns);
    }
  });
  std::string head, tail;
  std::size_t begin = 0, end = characters.size();
  int room = width - 1;  // the ellipsis takes one
  while (begin < end) {
    const bool at_head = display_width(head) <= display_width(tail);
    const std::size_t next = at_head ? begin : end - 1;
    if (widths[next] > room) break;
    room -= widths[next];
    if (at_head)
      head += characters[begin++];
    else
      tail.insert(0, characters[--end]);
  }
  return head + "…" + tail;
}

std::string printable(std::string_view text) {
  return with_signs(text, {}, "\n\t");
}

std::string visible(const std::string& token) {
  return with_signs(token, {{"\n", "↵"}, {"\t", "⇥"}, {" ", "·"}});
}

std::string table(const Rows& cells, int width) {
  Rows rows = cells;
  for (auto& row : rows)
    for (std::string& cell : row) cell = in_one_line(cell);
  std::vector<Column> columns = columns_of(rows);
  if (total_width(columns) <= width || narrowed(columns, width)) return drawn(rows, columns);
  columns[0].width = std::min(columns[0].width, std::max(width / 2, 8));
  std::string text;
  for (std::size_t begin = 1; begin < columns.size();) {
    std::vector<Column> part = {columns[0], columns[begin]};
    std::size_t end = begin + 1;
    for (; end < columns.size(); ++end) {
      part.push_back(columns[end]);
      if (total_width(part) <= width) continue;
      part.pop_back();
      break;
    }
    part.back().width = std::min(part.back().width, width - gap - columns[0].width);
    if (begin > 1) text += "\n";
    text += drawn(part_of(rows, begin, end), part);
    begin = end;
  }
  return text;
}

}  // namespace qkv
