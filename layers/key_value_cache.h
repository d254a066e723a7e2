#pragma once

#include <map>

#include "core/parameter.h"

namespace qkv {

/// The keys and values [B, T, D] of some tokens in one attention layer.
struct KeysValues {
  Tensor k, v;
};

/// What a decoder remembers of the tokens it has read, so that the next one costs a single step:
/// each attention layer's keys and values. Serves one batch of sequences; make another for the
/// next.
class KeyValueCache {
 public:
  /// Number of tokens read, and so the position of the next.
  Index length() const { return length_; }
  /// To be called once a model has read `tokens` more.
  void advance(Index tokens) { length_ += tokens; }

  /// Those of `attention`; null before it was asked for the first time.
  const KeysValues* find(const Module& attention) const;
  /// Those of `attention` with `next` put behind them along time.
  const KeysValues& append(const Module& attention, const KeysValues& next);

 private:
  std::map<const Module*, KeysValues> entries_;
  Index length_ = 0;
};

}  // namespace qkv
