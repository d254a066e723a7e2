#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/shape.h"

namespace qkv {

/// The use of a random stream; streams of different purposes are independent.
enum class Purpose : std::uint32_t { initialisation, shuffling, dropout, sampling, testing };

/// Random values as a pure function of (seed, purpose, step, stream, index): no state to save in a
/// checkpoint or to synchronise. Generator: Philox4x32-10 (Salmon et al. 2011, "Parallel
/// random numbers: as easy as 1, 2, 3").
class Random {
 public:
  Random(std::uint64_t seed, Purpose purpose, std::uint64_t step = 0);

  /// An independent stream; the n-th call on equal objects gives equal streams.
  Random next();

  /// Uniform over [0, 2^32).
  std::uint32_t bits(std::uint64_t index) const;
  /// bits(first), bits(first + 1), ..., many times as fast as one at a time.
  void bits(std::uint64_t first, std::span<std::uint32_t> to) const;
  /// Uniform over [0, 1).
  double uniform(std::uint64_t index) const;
  /// Normal with mean 0 and standard deviation 1, by the Box-Muller transform.
  double normal(std::uint64_t index) const;
  /// 0, ..., n - 1 in random order (Fisher-Yates shuffle).
  std::vector<Index> permutation(Index n) const;

 private:
  /// The counters of blocks of four values: word by word, those of `first` and an offset.
  template <class Word>
  void count(std::uint64_t first, const Word& offset, Word& a, Word& b, Word& c, Word& d) const;
  std::array<std::uint32_t, 4> one_block(std::uint64_t number) const;
  /// The values of some blocks from `first` on.
  auto blocks(std::uint64_t first) const;

  std::uint64_t seed_;
  std::uint64_t step_;
  std::uint32_t purpose_;
  std::uint32_t stream_ = 0;
  std::uint32_t streams_ = 0;
};

}  // namespace qkv
