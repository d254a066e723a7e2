#pragma once

#include <filesystem>
#include <iosfwd>

namespace qkv {

/// A file to be read. Throws UserError naming the path and what is wrong when there is no such
/// file, it cannot be opened, or `require_readable_kind` refuses it.
std::ifstream open_file(const std::filesystem::path& path);

/// Throws UserError when the path leads to a folder, a named pipe or a device: opening one may wait
/// for ever, and reading it may have no end.
void require_readable_kind(const std::filesystem::path& path);

}  // namespace qkv
