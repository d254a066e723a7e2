#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"
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

/// Windows of a text of ids, [batch, length], and the token after each of theirs.
struct WindowBatch {
  Indices ids, next;
};

/// The windows of `length` ids that begin at `starts`, for a language model. Throws ValueError when
/// one, with the token after it, is not within the text.
WindowBatch windows(std::span<const std::int32_t> text, std::span<const Index> starts,
                    Index length);

/// A pseudo-random permutation of 0, ..., n - 1 that takes no memory: a Feistel network on the
/// pairs of Z_a x Z_b with a b >= n, applied again to results from n on (Black & Rogaway 2002,
/// "Ciphers with Arbitrary Finite Domains").
class Permutation {
 public:
  /// Throws ValueError unless n > 0.
  Permutation(Index n, const Random& random);

  /// Where `i` in [0, n) goes.
  Index operator()(Index i) const;

 private:
  Index size_, left_, right_;  ///< n, a, b
  Random random_;
};

/// The training examples of each step: every epoch is a random permutation of all examples, and a
/// batch may span two epochs. A function of (seed, step) alone.
class BatchSampler {
 public:
  /// Throws ValueError when there are no examples or a batch is empty.
  BatchSampler(Index examples, Index batch, std::uint64_t seed);

  /// The examples of step `step`, counted from 0. Throws ValueError when their indices exceed 2^63.
  std::vector<Index> at(std::int64_t step) const;

 private:
  Index example(Index epoch, Index i) const;

  Index examples_, batch_;
  std::uint64_t seed_;
};

}  // namespace qkv
