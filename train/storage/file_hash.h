#pragma once

#include <filesystem>
#include <string>

namespace qkv {

/// The XXH3 128-bit hash of a file's contents, as `xxh128sum` prints it; empty where it is no
/// regular file. Throws FileError when reading fails.
std::string hash_of_file(const std::filesystem::path& file);

}  // namespace qkv
