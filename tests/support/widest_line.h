#pragma once

#include <algorithm>
#include <sstream>
#include <string>

#include "cli/terminal.h"

namespace qkv {

/// The width of the widest line of a text on a terminal.
inline int widest_line(const std::string& text) {
  std::istringstream lines(text);
  int widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, display_width(line));
  return widest;
}

}  // namespace qkv
