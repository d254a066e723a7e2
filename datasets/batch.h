#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "datasets/vocabulary.h"

namespace qkv {

/// Sequences of different lengths in one batch.
struct TokenBatch {
  Indices ids;      ///< [batch, time], padded
  Indices lengths;  ///< [batch]
};

/// Pads shorter sequences with `filler`. Throws ValueError when there is no sequence.
TokenBatch pad(std::span<const std::span<const std::int32_t>> sequences,
               std::int32_t filler = Vocabulary::padding);
TokenBatch pad(std::span<const std::vector<std::int32_t>> sequences,
               std::int32_t filler = Vocabulary::padding);

/// The training examples of each step: every epoch is a random permutation of all examples, and a
/// batch may span two epochs. A function of (seed, step) alone.
class BatchSampler {
 public:
  /// Throws ValueError when there are no examples or a batch is empty.
  BatchSampler(Index examples, Index batch, std::uint64_t seed);

  /// The examples of step `step`, counted from 0. Throws ValueError when their indices exceed 2^63.
  std::vector<Index> at(std::int64_t step);

 private:
  Index examples_, batch_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;  ///< of `order_`
  std::vector<Index> order_;
};

}  // namespace qkv
