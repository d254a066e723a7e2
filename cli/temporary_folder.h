#pragma once

#include <filesystem>

namespace qkv {

/// A folder of its own in the system's folder for temporary files ($TMPDIR, else /tmp), removed
/// with all that it holds.
class TemporaryFolder {
 public:
  /// Throws FileError when it cannot be created.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace qkv
