#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/picture.h"
#include "cli/table.h"
#include "inspect/documents/json.h"

namespace qkv {

/// A column of a table whose rows are JSON objects.
struct Column {
  std::string head;
  std::string pointer;            ///< to the value (RFC 6901): "/mean/loss"
  const char* number = "{:.4f}";  ///< format of a number with a fraction
};
/// The first row is the head. A value that is null or missing is "-".
Cells table_of(const Json& records, const std::vector<Column>& columns);
/// A heat map of the table's values; the first column names the rows, and a missing value is a
/// blank.
HeatMap map_of(const Json& records, const std::vector<Column>& columns);

/// The result of a command, independent of the output format: data for programs, blocks for people.
/// cli/output_format.h prints it.
struct Document {
  /// A line for stderr.
  struct Note {
    std::string text;
  };
  /// A line for people whose values the formats of tables have as a table.
  struct Line {
    std::string text;
    Cells rows;
  };
  using Block = std::variant<std::string, Cells, Line, Picture, Note>;

  Json data;                  ///< null: nothing to print
  std::vector<Block> blocks;  ///< in the order of printing
  int exit_code = 0;

  template <class... Arguments>
  void add_text(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    blocks.emplace_back(fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  /// The first row is the header. An empty line stands between two tables.
  void add_table(Cells rows) { blocks.emplace_back(std::move(rows)); }
  void add_line(std::string text, Cells rows) {
    blocks.emplace_back(Line{std::move(text), std::move(rows)});
  }
  /// An empty line stands before it where there is something else.
  void add_picture(Picture picture) { blocks.emplace_back(std::move(picture)); }
  template <class... Arguments>
  void add_note(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    blocks.emplace_back(Note{fmt::format(format, std::forward<Arguments>(arguments)...)});
  }
};

}  // namespace qkv
