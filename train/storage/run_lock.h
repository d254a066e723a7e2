#pragma once

#include <filesystem>

namespace qkv {

/// Keeps other processes from training in a run folder while it is alive. The lock dies with its
/// process, however that ends. The file DIR/lock holds the process id and is removed at the end.
class RunLock {
 public:
  /// Creates the folder where there is none. Throws UserError naming the process that trains there
  /// or a file of that name that is a link or no lock, FileError when the folder or the file cannot
  /// be made.
  explicit RunLock(const std::filesystem::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// Throws FileError when the file was removed or replaced, perhaps with its folder: another
  /// process may train there now.
  void require_held() const;

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

/// Whether a process trains in the folder now.
bool is_locked(const std::filesystem::path& folder);

}  // namespace qkv
