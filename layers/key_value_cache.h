#pragma once

#include <map>

#include "core/parameter.h"

namespace qkv {

/// The keys and values [B, T, D] of some tokens in one attention layer.
struct KeysValues {
  Tensor k, v;
};

/// Keys and values of the tokens that a decoder has read, by attention layer, so that decoding a
/// token costs a single step. Serves one batch of sequences.
class KeyValueCache {
 public:
  /// Number of tokens read, and so the position of the next.
  Index length() const { return length_; }
  /// To be called once a model has read `tokens` more.
  void advance(Index tokens) { length_ += tokens; }

  /// Keys and values of `attention`; null before it was asked for the first time.
  const KeysValues* find(const Module& attention) const;
  /// Appends `next` to those of `attention` along time and returns all.
  const KeysValues& append(const Module& attention, const KeysValues& next);

 private:
  std::map<const Module*, KeysValues> entries_;
  Index length_ = 0;
};

}  // namespace qkv
