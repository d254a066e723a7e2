#pragma once

#include <string>
#include <vector>

namespace qkv {

/// Columns of the terminal behind a file descriptor; 80 when there is none.
int terminal_width(int descriptor);

/// Columns for what is printed on stdout: the terminal's, or without limit in a pipe or file.
int output_width();

/// 24-bit colours, the 256 of a table, or none.
enum class Colours { none, indexed, full };

/// What stdout shows: none unless it is a terminal that can, and none when NO_COLOR is set; 24 bits
/// when COLORTERM says so.
Colours colours();

/// Columns that a UTF-8 text takes on a terminal: combining marks take none.
int display_width(const std::string& text);
/// `text` with spaces on the left or right up to `width` columns.
std::string pad_left(const std::string& text, int width);
std::string pad_right(const std::string& text, int width);

/// A table with a line under its head; the first column is flush left, the others flush right.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace qkv
