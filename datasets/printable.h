#pragma once

#include <string>
#include <string_view>

namespace qkv {

/// A text without control characters other than ends of lines and tabs: "␛" stands for an escape,
/// "�" for other control characters outside ASCII and for bytes that are not UTF-8. A terminal
/// takes no commands from it.
std::string printable(std::string_view text);

/// A token with its white space visible: "·" for a space, "↵" for the end of a line; else
/// printable.
std::string visible(const std::string& token);

/// A text whose ends of lines and tabs are signs, too, so that it cannot tear a table.
std::string in_one_line(std::string_view text);

}  // namespace qkv
