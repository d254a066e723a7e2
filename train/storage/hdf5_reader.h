#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "train/storage/hdf5_contents.h"

namespace qkv::hdf5 {

/// Reads a file that `File` wrote, without the HDF5 library, which crashes on hostile files. Every
/// structure must lie in the file, and all of them together must not be larger than it, so that
/// neither time nor memory can be. The result refers to `file`. Throws Hdf5Error naming the byte.
///
/// `File` writes, after the "HDF5 File Format Specification Version 1.1":
///
///     superblock 0 -> object header of a group -> B-tree -> symbol tables -> object headers
///                                              -> local heap: the names of the group's children
///     object header of a dataset -> contiguous data
Contents read(std::span<const std::byte> file);

/// Bytes at the beginning of a file that tell its length.
inline constexpr std::size_t superblock_size = 48;

/// How long the HDF5 file that `bytes` starts with should be, when it tells.
std::optional<std::uint64_t> stated_length(std::span<const std::byte> bytes);

}  // namespace qkv::hdf5
