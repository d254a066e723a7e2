#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace qkv {

/// This program in a process of its own, with other arguments. It ends with the object.
class ChildProcess {
 public:
  /// Its output goes to the file `output`. Throws FileError when it cannot be started.
  ChildProcess(std::vector<std::string> arguments, const std::filesystem::path& output);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// How it ended: its exit code, or 128 + the signal that ended it. Nothing while it runs.
  std::optional<int> exit_code();
  /// Sends SIGKILL, which no process can catch, and waits for the end.
  int kill();

 private:
  pid_t process_ = -1;
  std::optional<int> exit_code_;
};

}  // namespace qkv
