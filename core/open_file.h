#pragma once

#include <filesystem>
#include <fstream>

namespace qkv {

/// A file to be read. Throws UserError naming the path and what is wrong when there is no such file
/// or it cannot be opened.
std::ifstream open_file(const std::filesystem::path& path);

}  // namespace qkv
