#pragma once

#include <string>
#include <vector>

namespace qkv {

/// Columns of the terminal behind a file descriptor; 80 when there is none.
int terminal_width(int descriptor);

/// Columns for what is printed on stdout: the terminal's, or without limit in a pipe or file.
int output_width();

/// Whether stdout shows 24-bit colour: a terminal, and the user has not set NO_COLOR or TERM=dumb.
bool colours();

/// Columns that a UTF-8 text takes on a terminal: combining marks take none.
int display_width(const std::string& text);
/// `text` with spaces on the left or right up to `width` columns.
std::string pad_left(const std::string& text, int width);
std::string pad_right(const std::string& text, int width);

/// A table with a line under its head; the first column is flush left, the others flush right.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// A matrix of numbers in [0, 1] with labels.
struct HeatMap {
  std::vector<std::vector<double>> cells;
  std::vector<std::string> rows, columns;
};

/// Cells shaded from dark to bright on a colour terminal, plain numbers elsewhere. Where `width`
/// columns are too few, columns are numbered instead of named and cells show percent or tenths.
std::string heat_map(const HeatMap& map, bool colour, int width);

}  // namespace qkv
