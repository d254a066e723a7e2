#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace qkv {

/// A seal is a trailer line with the length and the checksum of all before it:
///
///     qkv-seal bytes 00000000000000012345 xxh3-128 0123456789abcdef0123456789abcdef\n
///
/// It detects accidental damage, not tampering. The checksum is what `head -c 12345 FILE |
/// xxh128sum` prints.
std::string seal_of(std::span<const std::byte> content);

constexpr std::size_t seal_size = 78;

/// Whether the file ends with a seal, right or wrong.
bool has_seal(std::span<const std::byte> file);

/// Checks the length in the seal of a file of `size` bytes, of which `end` is the end with the
/// seal; throws as `unseal` does.
void check_sealed_length(std::span<const std::byte> end, std::uint64_t size);

/// The content of a sealed file. Throws FileError, without the file's name, when a single bit of
/// content or seal has changed.
std::span<const std::byte> unseal(std::span<const std::byte> file);

}  // namespace qkv
