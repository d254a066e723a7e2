#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <vector>

namespace qkv {

/// A regular file that is open for reading.
class InputFile {
 public:
  /// Throws UserError naming the path when there is no such file or it cannot be opened.
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }
  /// At most `count` bytes from `offset` on, fewer at the end of the file. Threads may read at the
  /// same time. Throws FileError.
  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t count) const;
  /// Throws FileError when the file was written to since it was opened.
  void require_unchanged() const;

 private:
  std::filesystem::path path_;
  int file_;
  std::uint64_t size_ = 0;
  std::timespec modified_ = {};
};

}  // namespace qkv
