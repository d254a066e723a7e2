#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace qkv {

/// A seal is a line at the end of a file that tells the length and the hash of all before it:
///
///     qkv-seal bytes 00000000000000012345 xxh3-128 0123456789abcdef0123456789abcdef\n
///
/// It shows damage by accident, not by intent. The hash is what `head -c 12345 FILE | xxh128sum`
/// prints.
constexpr std::size_t seal_size = 78;

/// Appends the seal.
void seal(std::vector<std::byte>& content);

/// Whether a seal stands at the end, be it right or wrong.
bool has_seal(std::span<const std::byte> file);

/// The content of a sealed file. Throws FileError, without the file's name, when a single bit of
/// content or seal is not as `seal` left it.
std::span<const std::byte> unseal(std::span<const std::byte> file);

}  // namespace qkv
