// safetensors: as they are, and with the length of the header up to its last brace, so that what
// the JSON says is attacked, too.
#include "train/storage/safetensors.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/fuzz/readers/input.h"

namespace {

/// Tensors that were read can be written, and are then read as equal ones.
void check(std::span<const std::byte> bytes) {
  using namespace qkv;
  const std::string written = safetensors_bytes(read_safetensors(fuzz::file_of(bytes)));
  const auto file = fuzz::file_of(std::as_bytes(std::span(written)));
  fuzz::demand(safetensors_bytes(read_safetensors(file)) == written);
}

}  // namespace

void qkv::fuzz::read(std::span<const std::byte> input) {
  try {
    check(input);
  } catch (const Error&) {
    // Another length may do.
  }
  std::vector<std::byte> bytes(input.begin(), input.end());
  const auto end = std::ranges::find(bytes.rbegin(), bytes.rend(), std::byte{'}'}).base();
  const std::uint64_t length = static_cast<std::uint64_t>(end - bytes.begin()) - sizeof length;
  if (length < bytes.size())  // there is a brace behind the length
    std::memcpy(bytes.data(), &length, sizeof length);
  check(bytes);
}
