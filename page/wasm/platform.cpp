// core/platform.h in a browser.
#include "core/platform.h"

#include <sys/stat.h>

namespace qkv::platform {

std::filesystem::path program() {
  return {};
}

Cores cores() {
  return 1;
}

std::uint64_t peak_memory() {
  return __builtin_wasm_memory_size(0) * std::uint64_t{65536};
}

void return_freed_memory() {}

/// A module has 4 GiB of addresses at most, and a browser's tab less.
std::uint64_t memory() {
  return std::uint64_t{1} << 31;
}

int flush_to_disk(int) {
  return 0;
}

std::timespec modification_time(const struct stat& status) {
  return status.st_mtim;
}

}  // namespace qkv::platform
