#pragma once

#include <string>
#include <vector>

namespace qkv {

/// Notes the project's calls of the system that write, flush, link or rename files while it is
/// alive: "write FILE", "fsync FILE", "link FROM TO", "rename FROM TO". Several writes to a file in
/// a row are noted once. The linker passes the calls on (--wrap in tests/CMakeLists.txt). One at a
/// time.
class SystemCalls {
 public:
  SystemCalls();
  ~SystemCalls();
  SystemCalls(const SystemCalls&) = delete;
  SystemCalls& operator=(const SystemCalls&) = delete;

  const std::vector<std::string>& all() const { return calls_; }
  void note(const std::string& call);

 private:
  std::vector<std::string> calls_;
};

}  // namespace qkv
