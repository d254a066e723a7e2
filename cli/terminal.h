#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "datasets/printable.h"

namespace qkv {

/// Columns of the terminal behind a file descriptor; 80 when there is none.
int terminal_width(int descriptor);

/// Columns for what is printed on stdout: the terminal's, or without limit in a pipe or file.
int output_width();

/// 24-bit colours, the 256 of a table, the first 16 of them, or none.
enum class Colours { none, basic, indexed, full };

/// The colours of stdout: none unless it is a terminal that has them, and none when NO_COLOR is
/// set; 24 bits when COLORTERM is truecolor; 16 on consoles that have no more (TERM=linux).
Colours colours();

/// Width of a UTF-8 text on a terminal; combining marks have none.
int display_width(const std::string& text);
/// `text` with spaces on the left or right up to `width` columns.
std::string pad_left(const std::string& text, int width);
std::string pad_right(const std::string& text, int width);

/// At most `width` columns of a text, an ellipsis in place of its middle where it is longer:
/// "encoder.…w_q.weight".
std::string abbreviated(const std::string& text, int width);
std::vector<std::string> abbreviated(std::vector<std::string> texts, int width);

}  // namespace qkv
