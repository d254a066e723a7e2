#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"

namespace qkv {

/// Cells by row; the first row is the head.
using Cells = std::vector<std::vector<std::string>>;

/// A table with a line under its head; columns of numbers are flush right, the others flush left.
/// Where `width` is too small, long texts are abbreviated, or the columns go into several tables
/// that all begin with the first one.
std::string table(const Cells& rows, int width = output_width());

/// A table in other formats, each for the program that reads it: comma-separated values (RFC 4180,
/// lines end in "\n"), a table of GitHub's Markdown, and a LaTeX tabular. Columns of numbers are
/// flush right.
std::string to_csv(const Cells& rows);
std::string to_markdown(const Cells& rows);
std::string to_latex(const Cells& rows);

}  // namespace qkv
