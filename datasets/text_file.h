#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "datasets/read_callback.h"

namespace qkv {

/// Calls `use` for each line of a UTF-8 text file without line end (LF, CRLF or, in a file without
/// LF, CR) and byte order mark, and its number, counted from 1. Throws UserError naming the file,
/// and the line where there is one, when the file cannot be read, is empty, larger than 1 GiB, not
/// UTF-8 or contains a zero byte; FileError when reading fails.
void for_each_line(const std::filesystem::path& path, ReadCallback& callback,
                   const std::function<void(std::size_t number, std::string& line)>& use);

/// Throws UserError naming the place when one of a line's tokens has more than `max_token_bytes`.
void require_short_tokens(std::string_view line, std::string_view place);

}  // namespace qkv
