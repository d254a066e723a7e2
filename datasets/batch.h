#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "datasets/vocabulary.h"

namespace qkv {

/// Sentences of different length side by side.
struct TokenBatch {
  Indices ids;      ///< [batch, time], shorter sentences filled up
  Indices lengths;  ///< [batch]
};

/// Fills shorter sentences up with `filler`. Throws ValueError when there is no sentence.
TokenBatch pad(std::span<const std::vector<std::int32_t>> sentences,
               std::int32_t filler = Vocabulary::padding);

/// Which examples each step trains on: every epoch goes through all of them in an order of its own,
/// and a batch may reach into the next epoch. A function of (seed, step) alone.
class BatchSampler {
 public:
  /// Throws ValueError when there are no examples or a batch is empty.
  BatchSampler(Index examples, Index batch, std::uint64_t seed);

  /// The examples of step `step`, counted from 0.
  std::vector<Index> at(std::int64_t step);

 private:
  Index examples_, batch_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;  ///< of `order_`
  std::vector<Index> order_;
};

}  // namespace qkv
