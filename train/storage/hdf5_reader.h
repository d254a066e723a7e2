#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "train/storage/hdf5.h"

namespace qkv::hdf5 {

/// A dataset or an attribute.
struct Values {
  enum class Type { float32, float64, int64, text };
  Type type;
  std::size_t width;  ///< bytes of an element
  Shape shape;
  std::span<const std::byte> bytes;  ///< of the file
};

/// A group of a file and everything below it. Members throw Hdf5Error naming the object where it is
/// missing or of another type or rank.
struct Contents {
  std::string path = {};  ///< "/model"; empty: the root
  std::map<std::string, std::unique_ptr<const Contents>> groups = {};
  std::map<std::string, Values> datasets = {}, attributes = {};

  std::vector<std::string> names() const;
  const Contents& group(const std::string& name) const;
  std::int64_t integer_attribute(const std::string& name) const;
  std::string text_attribute(const std::string& name) const;
  Tensor tensor(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;
};

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
