#pragma once

#include <string>
#include <vector>

namespace qkv {

/// Notes the project's calls of the system that write, flush, link, rename or remove files while it
/// is alive: "write FILE", "fsync FILE", "link FROM TO", "rename FROM TO", "unlink FILE". Several
/// writes to a file in a row are noted once. The linker passes the calls on (--wrap in
/// tests/CMakeLists.txt). One at a time.
class SystemCalls {
 public:
  /// What happens at one of the calls: it fails with EIO, or the process ends as if it was killed,
  /// in the middle of what the call writes.
  enum class Fault { none, error, kill };

  static constexpr int killed = 99;  ///< the exit code then

  SystemCalls() : SystemCalls(Fault::none, 0) {}
  /// The fault at call number `at`, counted from 0; -1: at none. Nothing is flushed, to save time.
  SystemCalls(Fault fault, int at);
  ~SystemCalls();
  SystemCalls(const SystemCalls&) = delete;
  SystemCalls& operator=(const SystemCalls&) = delete;

  const std::vector<std::string>& all() const { return calls_; }
  int count() const { return count_; }
  void note(const std::string& call);
  /// Counts a call and returns what happens to it.
  Fault next();
  bool flushes() const { return fault_ == Fault::none; }

 private:
  Fault fault_;
  int at_, count_ = 0;
  std::vector<std::string> calls_;
};

}  // namespace qkv
