#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/read_callback.h"

namespace qkv {

/// The most bytes that a data file may have.
inline constexpr std::uintmax_t max_file_bytes = std::uintmax_t{1} << 30;

/// Throws UserError naming the place when a line is not UTF-8 or contains a zero byte.
void require_text(std::string_view line, const std::filesystem::path& file, std::size_t number);

/// Calls `use` for each line of a UTF-8 text file without line end (LF, CRLF or, in a file without
/// LF, CR) and byte order mark, and its number, counted from 1. Throws UserError naming the file,
/// and the line where there is one, when the file cannot be read, is empty, larger than 1 GiB, not
/// UTF-8 or contains a zero byte; FileError when reading fails.
void for_each_line(const std::filesystem::path& path, ReadCallback& callback,
                   const std::function<void(std::size_t number, std::string& line)>& use);
/// All of them.
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

}  // namespace qkv
