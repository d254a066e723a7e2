#include "train/storage/seal.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"
#include "train/storage/content_hash.h"

namespace qkv {
namespace {

constexpr std::string_view opening = "qkv-seal bytes ";
constexpr std::size_t digits = 20;

/// The end of a file where its seal belongs.
std::string_view trailer_of(std::span<const std::byte> file) {
  const auto end = file.last(std::min(file.size(), seal_size));
  return {reinterpret_cast<const char*>(end.data()), end.size()};
}

}  // namespace

std::string seal_of(std::span<const std::byte> content) {
  ContentHash hash;
  hash.add(content);
  return fmt::format("{}{:0{}} xxh3-128 {}\n", opening, content.size(), digits, hash.text());
}

bool has_seal(std::span<const std::byte> file) {
  return trailer_of(file).starts_with(opening);
}

void check_sealed_length(std::span<const std::byte> end, std::uint64_t size) {
  require<FileError>(size > 0, "is empty");
  const std::string_view trailer = trailer_of(end);
  require<FileError>(trailer.starts_with(opening) && size >= seal_size,
                     "is damaged: it has no checksum at its end; take the previous checkpoint");
  std::uint64_t sealed = 0;
  const char* number = trailer.data() + opening.size();
  std::from_chars(number, number + digits, sealed);
  require<FileError>(sealed == size - seal_size,
                     "is damaged: {} bytes lie before the checksum, {} were written; take the "
                     "previous checkpoint",
                     size - seal_size, sealed);
}

std::span<const std::byte> unseal(std::span<const std::byte> file) {
  check_sealed_length(file, file.size());
  const auto content = file.first(file.size() - seal_size);
  require<FileError>(
      trailer_of(file) == seal_of(content),
      "is damaged: its bytes do not have their checksum; take the previous checkpoint");
  return content;
}

}  // namespace qkv
