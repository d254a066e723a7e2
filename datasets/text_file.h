#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

/// The lines of a UTF-8 text file without line ends (LF or CRLF) and byte order mark.
/// Throws UserError naming the file, and the line where there is one, when the file cannot be read,
/// is empty, larger than 1 GiB, not UTF-8 or contains a zero byte; FileError when reading fails.
std::vector<std::string> read_lines(const std::filesystem::path& path);
/// A line and its number, counted from 1.
struct NumberedLine {
  std::size_t number;
  std::string text;
};
/// The lines that are not blank. Throws UserError as `read_lines` does, and when all are blank.
std::vector<NumberedLine> read_filled_lines(const std::filesystem::path& path);

/// Throws UserError naming the place when one of a line's tokens has more than `max_token_bytes`.
void require_short_tokens(std::string_view line, std::string_view place);

/// All lines as one text, each ended by LF.
std::string read_text(const std::filesystem::path& path);

}  // namespace qkv
