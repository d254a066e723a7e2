#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "train/storage/durable_file.h"
#include "train/storage/seal.h"

namespace qkv {

/// Changes some of the bytes as damage and as malice do: single bytes, and integers of 8 bytes that
/// become extreme or lead elsewhere in the file.
inline void mutate(std::vector<std::byte>& bytes, std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  // Half of the changes hit bytes that are in use; most of a small file is empty.
  const auto position = [&] {
    std::size_t at = below(bytes.size());
    for (int i = 0; i < 200 && bytes[at] == std::byte{0}; ++i) at = below(bytes.size());
    return at;
  };
  for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
    if (below(3) > 0) {
      bytes[position()] = static_cast<std::byte>(below(256));
      continue;
    }
    const std::uint64_t values[] = {
        0,       1, ~std::uint64_t{0}, std::uint64_t{1} << 63, bytes.size(), below(bytes.size()),
        random()};
    const std::uint64_t value = values[below(std::size(values))];
    const std::size_t at = position() & ~std::size_t{7};
    std::memcpy(bytes.data() + at, &value, std::min(sizeof value, bytes.size() - at));
  }
}

/// A checkpoint with changed bytes behind a right seal, another one each time.
class Mutations {
 public:
  explicit Mutations(const std::filesystem::path& checkpoint) {
    const auto bytes = read_file(checkpoint, 1 << 24);
    const auto content = unseal(std::as_bytes(std::span(bytes)));
    content_.assign(content.begin(), content.end());
  }
  void write_next(const std::filesystem::path& file) {
    std::vector<std::byte> bytes = content_;
    mutate(bytes, random_);
    std::ofstream(file, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes))
        << seal_of(bytes);
  }
  /// How many a test tries: 300, or what the environment variable QKV_MUTATIONS says.
  static int count() {
    const char* const count = std::getenv("QKV_MUTATIONS");
    return count ? std::atoi(count) : 300;
  }

 private:
  std::vector<std::byte> content_;
  std::mt19937_64 random_{7};
};

}  // namespace qkv
