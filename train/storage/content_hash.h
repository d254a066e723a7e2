#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace qkv {

/// The XXH3 128-bit hash of bytes that are added block by block.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void add(std::span<const std::byte> bytes);
  /// Of all so far, as `xxh128sum` prints it.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
