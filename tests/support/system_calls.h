#pragma once

#include <cerrno>
#include <string>
#include <vector>

namespace qkv {

/// Notes the project's calls of the system that write, flush, link, rename or remove files while it
/// is alive: "write FILE", "fsync FILE", "link FROM TO", "rename FROM TO", "unlink FILE". Several
/// writes to a file in a row are noted once. The linker passes the calls on (--wrap in
/// tests/CMakeLists.txt), or the program is started with libqkv_faults.so (preloaded_faults.cpp).
/// One at a time.
class SystemCalls {
 public:
  /// The fault at one of the calls: it fails, or the process ends as if it was killed, in the
  /// middle of what the call writes.
  enum class Fault { none, error, kill };

  static constexpr int killed = 99;  ///< the exit code then

  SystemCalls() : SystemCalls(Fault::none, 0) {}
  /// The fault at call number `at`, counted from 0; -1: at none. `error` is what a call fails with.
  /// Nothing is flushed, to save time.
  SystemCalls(Fault fault, int at, int error = EIO);
  ~SystemCalls();
  SystemCalls(const SystemCalls&) = delete;
  SystemCalls& operator=(const SystemCalls&) = delete;

  const std::vector<std::string>& all() const { return calls_; }
  int count() const { return count_; }
  bool flushes() const { return fault_ == Fault::none; }
  /// The object that is alive, or none.
  static SystemCalls* watching();
  /// Notes a call, if an object is alive. True, with errno, when the call fails; does not return
  /// when the process is killed.
  static bool fails(const std::string& call);

 private:
  Fault fault_;
  int at_, error_, count_ = 0;
  std::vector<std::string> calls_;
};

}  // namespace qkv
