#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qkv {

/// The lines of a UTF-8 text file without their ends (LF or CRLF) and without a byte order mark.
/// Throws UserError naming the file, and the line where there is one, when the file cannot be read,
/// is empty, larger than 1 GiB, not UTF-8 or contains a zero byte.
std::vector<std::string> read_lines(const std::filesystem::path& path);
/// The same lines as one text, each ended by LF.
std::string read_text(const std::filesystem::path& path);

}  // namespace qkv
