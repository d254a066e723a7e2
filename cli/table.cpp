#include "cli/table.h"

#include <fast_float/fast_float.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string_view>

namespace qkv {
namespace {

/// "0.5", "-inf", "12%", "3.2 ms", "0.5 ± 0.1", or a placeholder of a missing value.
bool is_number(const std::string& text) {
  constexpr std::string_view plus_minus = " ± ";
  if (const auto at = text.find(plus_minus); at != text.npos)
    return is_number(text.substr(0, at)) && is_number(text.substr(at + plus_minus.size()));
  static constexpr std::array<std::string_view, 4> units = {"", "%", " ms", " MiB"};
  if (text.empty() || text == "-") return true;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = fast_float::from_chars(text.data(), end, value);
  return error == std::errc() &&
         std::ranges::find(units, std::string_view(rest, end)) != units.end();
}

struct Layout {
  int width = 0;
  bool numeric = true;
};

std::vector<Layout> columns_of(const Cells& rows) {
  std::vector<Layout> columns(rows.at(0).size());
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      columns[i].width = std::max(columns[i].width, display_width(rows[r][i]));
      columns[i].numeric = columns[i].numeric && (r == 0 || is_number(rows[r][i]));
    }
  return columns;
}

constexpr int gap = 2;

int total_width(const std::vector<Layout>& columns) {
  int width = -gap;
  for (const Layout& column : columns) width += column.width + gap;
  return width;
}

/// Makes the widest columns of text narrower until the table fits; false when that is not enough.
bool narrowed(std::vector<Layout>& columns, int width) {
  constexpr int least = 24;
  std::vector<Layout> narrow = columns;
  for (int excess = total_width(narrow) - width; excess > 0; --excess) {
    const auto widest = std::ranges::max_element(
        narrow, {}, [](const Layout& c) { return c.numeric ? 0 : c.width; });
    if (widest->numeric || widest->width <= least) return false;
    --widest->width;
  }
  columns = narrow;
  return true;
}

std::string drawn(const Cells& rows, const std::vector<Layout>& columns,
                  const std::vector<std::size_t>& shown) {
  std::string text, rule;
  for (const std::size_t i : shown) {
    if (i != shown.front()) rule.append(gap, ' ');
    for (int j = 0; j < columns[i].width; ++j) rule += "─";
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (const std::size_t i : shown) {
      const auto [width, numeric] = columns[i];
      const std::string cell = abbreviated(rows[r][i], width);
      if (i != shown.front()) line.append(gap, ' ');
      line += numeric ? pad_left(cell, width) : pad_right(cell, width);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (r == 0) text += rule + "\n";
  }
  return text;
}

using Escapes = std::map<char, std::string_view>;

std::string escaped(const std::string& text, const Escapes& escapes) {
  std::string result;
  for (const char& c : text) {
    const auto found = escapes.find(c);
    result += found == escapes.end() ? std::string_view(&c, 1) : found->second;
  }
  return result;
}

/// The cells of a row between `begin` and `end`, with `gap` between them.
std::string joined(const std::vector<std::string>& row, const Escapes& escapes,
                   std::string_view begin, std::string_view between, std::string_view end) {
  std::string line(begin);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) line += between;
    line += escaped(in_one_line(row[i]), escapes);
  }
  return line.append(end);
}

}  // namespace

std::string table(const Cells& cells, int width) {
  Cells rows = cells;
  for (auto& row : rows)
    for (std::string& cell : row) cell = in_one_line(cell);
  std::vector<Layout> columns = columns_of(rows);
  if (total_width(columns) <= width || narrowed(columns, width)) {
    std::vector<std::size_t> all(columns.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return drawn(rows, columns, all);
  }
  columns[0].width = std::min(columns[0].width, std::max(width / 2, 8));
  std::string text;
  for (std::size_t next = 1; next < columns.size();) {
    std::vector<std::size_t> part = {0, next};
    int room = width - gap - columns[0].width;
    columns[next].width = std::min(columns[next].width, room);
    room -= columns[next].width;
    for (++next; next < columns.size() && columns[next].width + gap <= room; ++next) {
      part.push_back(next);
      room -= columns[next].width + gap;
    }
    text += (text.empty() ? "" : "\n") + drawn(rows, columns, part);
  }
  return text;
}

std::string to_csv(const Cells& rows) {
  std::string text;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool quoted = row[i].find_first_of(",\"\r\n") != std::string::npos;
      if (i > 0) text += ',';
      text += quoted ? '"' + escaped(row[i], {{'"', "\"\""}}) + '"' : row[i];
      if (i + 1 == row.size()) text += '\n';
    }
  return text;
}

std::string to_markdown(const Cells& rows) {
  const Escapes escapes = {{'\\', "\\\\"}, {'|', "\\|"}};
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    text += joined(rows[r], escapes, "| ", " | ", " |\n");
    if (r > 0) continue;
    for (const Layout& column : columns_of(rows)) text += column.numeric ? "|---:" : "|---";
    text += "|\n";
  }
  return text;
}

std::string to_latex(const Cells& rows) {
  const Escapes escapes = {{'&', "\\&"},
                           {'%', "\\%"},
                           {'$', "\\$"},
                           {'#', "\\#"},
                           {'_', "\\_"},
                           {'{', "\\{"},
                           {'}', "\\}"},
                           {'~', "\\textasciitilde{}"},
                           {'^', "\\textasciicircum{}"},
                           {'\\', "\\textbackslash{}"}};
  std::string text = "\\begin{tabular}{";
  for (const Layout& column : columns_of(rows)) text += column.numeric ? 'r' : 'l';
  text += "}\n\\hline\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    text += joined(rows[r], escapes, "", " & ", " \\\\\n");
    if (r == 0) text += "\\hline\n";
  }
  return text + "\\hline\n\\end{tabular}\n";
}

}  // namespace qkv
