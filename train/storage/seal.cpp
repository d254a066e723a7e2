#include "train/storage/seal.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

namespace qkv {
namespace {

constexpr std::string_view opening = "qkv-seal bytes ";
constexpr std::size_t digits = 20;

std::string seal_of(std::span<const std::byte> content) {
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  return fmt::format("{}{:0{}} xxh3-128 {:016x}{:016x}\n", opening, content.size(), digits,
                     hash.high64, hash.low64);
}

}  // namespace

void seal(std::vector<std::byte>& content) {
  const std::string text = seal_of(content);
  const auto bytes = std::as_bytes(std::span(text));
  content.insert(content.end(), bytes.begin(), bytes.end());
}

bool has_seal(std::span<const std::byte> file) {
  const auto end = file.last(std::min(file.size(), seal_size));
  const std::string_view found(reinterpret_cast<const char*>(end.data()), end.size());
  return found.starts_with(opening);
}

std::span<const std::byte> unseal(std::span<const std::byte> file) {
  require<FileError>(!file.empty(), "is empty");
  const auto content = file.first(file.size() - std::min(file.size(), seal_size));
  const auto end = file.last(file.size() - content.size());
  const std::string_view found(reinterpret_cast<const char*>(end.data()), end.size());
  require<FileError>(has_seal(file),
                     "is damaged: it has no checksum at its end; take the previous checkpoint");

  std::uint64_t sealed = 0;
  const char* number = found.data() + opening.size();
  std::from_chars(number, number + digits, sealed);
  require<FileError>(sealed == content.size(),
                     "is damaged: {} bytes lie before the checksum, {} were written; take the "
                     "previous checkpoint",
                     content.size(), sealed);
  require<FileError>(
      found == seal_of(content),
      "is damaged: its bytes do not have their checksum; take the previous checkpoint");
  return content;
}

}  // namespace qkv
