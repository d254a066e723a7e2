#include "train/storage/content_hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "core/dtype.h"

namespace qkv {
namespace {

using State = std::unique_ptr<XXH3_state_s, void (*)(XXH3_state_s*)>;

State new_state() {
  return {XXH3_createState(), [](XXH3_state_s* state) { XXH3_freeState(state); }};
}

}  // namespace

std::string checksum_of(const std::map<std::string, Tensor>& tensors) {
  const State state = new_state();
  XXH3_64bits_reset(state.get());
  for (const auto& [name, tensor] : tensors) {
    XXH3_64bits_update(state.get(), name.data(), name.size());
    dispatch(tensor.dtype(), [&, &elements = tensor]<class T>() {
      const auto bytes = std::as_bytes(elements.data<T>());
      XXH3_64bits_update(state.get(), bytes.data(), bytes.size());
    });
  }
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

ContentHash::ContentHash() : state_(new_state()) {
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
