#include "tests/fuzz/readers/input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "core/error.h"

namespace qkv::fuzz {
namespace {

namespace fs = std::filesystem;

/// Removed at the end.
struct File {
  File() {
    const fs::path memory = "/dev/shm";
    path = (fs::is_directory(memory) ? memory : fs::temp_directory_path()) /
           fmt::format("qkv-fuzz-{}", ::getpid());
  }
  ~File() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  fs::path path;
};

}  // namespace

fs::path file_of(std::span<const std::byte> input) {
  static const File file;
  std::ofstream(file.path, std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()), std::ssize(input));
  return file.path;
}

std::string_view text_of(std::span<const std::byte> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

void demand(bool ok) {
  if (!ok) std::abort();
}

}  // namespace qkv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    qkv::fuzz::read(std::as_bytes(std::span(data, size)));
  } catch (const qkv::Error&) {
    return 0;
  }
  return 0;
}
