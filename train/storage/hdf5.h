#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"

/// Writes the part of HDF5 that qkv uses: a tree of groups with tensors, texts and attributes.
/// Equal trees written in equal order have equal bytes. Objects of a file belong to one thread at a
/// time.
namespace qkv::hdf5 {

/// HDF5 failed, or a file has unexpected contents. The message names the object, not the file.
struct Hdf5Error : Error {
  using Error::Error;
};

/// Owns an object of the HDF5 library.
class Handle {
 public:
  using Close = int (*)(std::int64_t);
  Handle(std::int64_t id, Close close) noexcept : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  std::int64_t id() const noexcept { return id_; }

 private:
  std::int64_t id_;
  Close close_;
};

/// The longest text, in bytes, that an attribute with a name of up to 7 bytes can hold: a message
/// of an object header, 32 bytes of description included, has at most 65528.
inline constexpr std::size_t max_attribute_text = 65496;

/// A group of an open file. Names are single names, without '/'. Every member throws Hdf5Error.
class Group {
 public:
  explicit Group(Handle group) noexcept : group_(std::move(group)) {}

  /// The child group `name`, made if it does not exist.
  Group make_group(const std::string& name);
  void write_attribute(const std::string& name, std::int64_t value);
  void write_attribute(const std::string& name, const std::string& text);
  void write_tensor(const std::string& name, const Tensor& tensor);
  /// Texts become fixed-length UTF-8 padded with zero bytes and must not contain any.
  void write_text(const std::string& name, const std::string& text);
  /// Where padding would take more than 1 MiB and 8 times the texts' bytes, they become a group of
  /// `data`, the texts one after the other, and int64 `offsets`, where each begins and the last one
  /// ends.
  void write_texts(const std::string& name, std::span<const std::string> texts);
  void write_integers(const std::string& name, std::span<const std::int64_t> values);

 private:
  Handle group_;
};

/// A new HDF5 file in memory or on the disk, in the earliest format.
class File {
 public:
  /// A file in memory.
  File();
  /// A file on the disk. Throws Hdf5Error when it exists or cannot be created.
  explicit File(const std::filesystem::path& path);

  Group root() const;
  /// Writes what is not on the disk yet; whether the file is complete is known only then.
  void flush() const;
  /// The bytes of a file in memory, valid until it changes.
  std::span<const std::byte> image() const;

 private:
  Handle file_;
};

}  // namespace qkv::hdf5
