#pragma once

#include <map>
#include <optional>

#include "core/parameter.h"

namespace qkv {

/// The keys and values [B, T, D] of some tokens in one attention layer.
struct KeysValues {
  Tensor k, v;
};

/// A tensor [B, T, D] that grows along time: in place where B is 1 and there are no gradients, so
/// that n tokens cost O(n) copies.
class GrowingTensor {
 public:
  const Tensor& all() const { return all_; }
  void append(const Tensor& next);

 private:
  Tensor all_;
  Tensor room_;  ///< the buffer of `all_`, with space behind it; null while there is none
};

/// Keys and values of the tokens that a decoder has read, by attention layer, so that decoding a
/// token costs a single step. Serves one batch of sequences.
class KeyValueCache {
 public:
  KeyValueCache() = default;
  // Copies would write their tokens behind those that they share.
  KeyValueCache(KeyValueCache&&) = default;
  KeyValueCache& operator=(KeyValueCache&&) = default;

  /// Number of tokens read, and so the position of the next.
  Index length() const { return length_; }
  /// To be called once a model has read `tokens` more.
  void advance(Index tokens) { length_ += tokens; }

  /// Keys and values of `attention`; nothing before it was asked for the first time.
  std::optional<KeysValues> find(const Module& attention) const;
  /// Appends `next` to those of `attention` along time and returns all.
  KeysValues append(const Module& attention, const KeysValues& next);

 private:
  struct Entry {
    GrowingTensor k, v;
  };
  std::map<const Module*, Entry> entries_;
  Index length_ = 0;
};

}  // namespace qkv
