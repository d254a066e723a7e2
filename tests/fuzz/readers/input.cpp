#include "tests/fuzz/readers/input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "core/error.h"

namespace qkv::fuzz {
namespace {

namespace fs = std::filesystem;

/// Removed at the end.
struct Folder {
  Folder() {
    const fs::path memory = "/dev/shm";
    path = (fs::is_directory(memory) ? memory : fs::temp_directory_path()) /
           fmt::format("qkv-fuzz-{}", ::getpid());
    fs::create_directory(path);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  fs::path path;
};

/// Printed at the end.
struct Inputs {
  ~Inputs() { fmt::print(stderr, "inputs: {} refused, {} accepted\n", refused, accepted); }

  int refused = 0, accepted = 0;
};

}  // namespace

fs::path file_of(std::span<const std::byte> input, std::string_view name) {
  static const Folder folder;
  const fs::path file = folder.path / name;
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()), std::ssize(input));
  return file;
}

std::string_view text_of(std::span<const std::byte> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

std::vector<std::span<const std::byte>> parts_of(std::span<const std::byte> input,
                                                 std::size_t count) {
  std::vector<std::span<const std::byte>> parts;
  while (parts.size() + 1 < count) {
    const auto end = std::ranges::find(input, std::byte{0x1E});
    const auto length = static_cast<std::size_t>(end - input.begin());
    parts.push_back(input.first(length));
    input = input.subspan(std::min(length + 1, input.size()));
  }
  parts.push_back(input);
  return parts;
}

void demand(bool ok, const char* file, int line) {
  if (ok) return;
  fmt::print(stderr, "wrong load: {}:{}\n", file, line);
  std::abort();
}

}  // namespace qkv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static qkv::fuzz::Inputs inputs;
  try {
    qkv::fuzz::read(std::as_bytes(std::span(data, size)));
    ++inputs.accepted;
  } catch (const qkv::Error&) {
    ++inputs.refused;
  }
  return 0;
}
