#pragma once

#include <filesystem>

namespace qkv {

/// Keeps other processes from training in a run folder while it is alive. The lock dies with its
/// process, however that ends. The file DIR/lock holds the process id and is removed at the end.
class RunLock {
 public:
  /// Creates the folder where there is none. Throws UserError naming the process that trains there,
  /// FileError when the folder or the file cannot be made.
  explicit RunLock(const std::filesystem::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace qkv
