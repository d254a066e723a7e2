#include "train/storage/content_hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace qkv {

ContentHash::ContentHash()
    : state_(XXH3_createState(), [](XXH3_state_s* state) { XXH3_freeState(state); }) {
  XXH3_128bits_reset(state_.get());
}

void ContentHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

std::string ContentHash::text() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace qkv
