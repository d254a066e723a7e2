#pragma once

#include <cstddef>
#include <span>

namespace qkv::hdf5 {

/// Checks an HDF5 file in the earliest format before the HDF5 library, which crashes on hostile
/// files, is trusted with it: every structure is one that `File` writes, lies in the file and
/// overlaps no other; groups form a tree; datasets are contiguous and in the file, so that none can
/// be larger than it. Throws Hdf5Error naming the byte.
///
/// What `File` writes, after the "HDF5 File Format Specification Version 1.1":
///
///     superblock 0 -> object header of a group -> B-tree -> symbol tables -> object headers
///                                              -> local heap: the names of the group's children
///     object header of a dataset -> contiguous data
void check_structure(std::span<const std::byte> file);

}  // namespace qkv::hdf5
