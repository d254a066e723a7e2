#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/tensor.h"

struct XXH3_state_s;

namespace qkv {

/// The XXH3 64-bit hash of tensors in the order of their names, each as its name and the bytes of
/// its elements: 16 hexadecimal digits. Models with equal checksums have equal parameters.
std::string checksum_of(const std::map<std::string, Tensor>& tensors);

/// The XXH3 128-bit hash of bytes that are added block by block.
class ContentHash {
 public:
  ContentHash();
  void add(std::span<const std::byte> bytes);
  /// The hash of all bytes so far, as `xxh128sum` prints it.
  std::string text() const;

 private:
  std::unique_ptr<XXH3_state_s, void (*)(XXH3_state_s*)> state_;
};

}  // namespace qkv
