#include "datasets/batch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace qkv {

TokenBatch pad(std::span<const std::span<const std::int32_t>> sequences, std::int32_t filler) {
  require<ValueError>(!sequences.empty(), "[pad] there is no sequence; give at least one");
  std::vector<std::int32_t> lengths;
  lengths.reserve(sequences.size());
  for (const auto& sequence : sequences)
    lengths.push_back(static_cast<std::int32_t>(sequence.size()));
  const auto time = static_cast<std::size_t>(std::ranges::max(lengths));
  std::vector<std::int32_t> ids(sequences.size() * time, filler);
  for (std::size_t i = 0; i < sequences.size(); ++i)
    std::ranges::copy(sequences[i], ids.begin() + static_cast<std::ptrdiff_t>(i * time));
  const Index batch = std::ssize(sequences);
  return {Indices(ids, {batch, static_cast<Index>(time)}), Indices(lengths, {batch})};
}

TokenBatch pad(std::span<const std::vector<std::int32_t>> sequences, std::int32_t filler) {
  const std::vector<std::span<const std::int32_t>> views(sequences.begin(), sequences.end());
  return pad(views, filler);
}

WindowBatch windows(std::span<const std::int32_t> text, std::span<const Index> starts,
                    Index length) {
  std::vector<std::int32_t> ids, next;
  for (const Index start : starts) {
    require<ValueError>(length > 0 && start >= 0 && start < std::ssize(text) - length,
                        "[windows] {} tokens from {} on, and the one after them, are not within "
                        "the {} of the text",
                        length, start, text.size());
    const auto first = text.begin() + start;
    ids.insert(ids.end(), first, first + length);
    next.insert(next.end(), first + 1, first + 1 + length);
  }
  const Shape shape{std::ssize(starts), length};
  return {Indices(ids, shape), Indices(next, shape)};
}

Permutation::Permutation(Index n, const Random& random) : size_(n), random_(random) {
  require<ValueError>(n > 0, "[permutation] of {} elements; give at least one", n);
  left_ = std::max<Index>(std::llround(std::sqrt(static_cast<double>(n))), 1);
  right_ = (n - 1) / left_ + 1;
}

Index Permutation::operator()(Index i) const {
  constexpr std::uint64_t rounds = 12;
  /// The half `x`, shifted by a random function of the round and the other half.
  const auto shifted = [&](Index x, Index modulus, std::uint64_t round, Index other) {
    const std::uint64_t bits = random_.bits(static_cast<std::uint64_t>(other) * rounds + round);
    const Index sum = x + static_cast<Index>(bits * static_cast<std::uint64_t>(modulus) >> 32);
    return sum < modulus ? sum : sum - modulus;
  };
  do {
    Index left = i % left_, right = i / left_;
    for (std::uint64_t round = 0; round < rounds; round += 2) {
      left = shifted(left, left_, round, right);
      right = shifted(right, right_, round + 1, left);
    }
    i = right * left_ + left;
  } while (i >= size_);
  return i;
}

BatchSampler::BatchSampler(Index examples, Index batch, std::uint64_t seed)
    : examples_(examples), batch_(batch), seed_(seed) {
  require<ValueError>(examples > 0 && batch > 0,
                      "batches need examples: {} examples, batches of {}", examples, batch);
}

std::vector<Index> BatchSampler::at(std::int64_t step) const {
  require<ValueError>(step >= 0 && step < std::numeric_limits<Index>::max() / batch_,
                      "[batches] step {} is not in [0, 2^63 / {})", step, batch_);
  std::vector<Index> chosen;
  for (Index i = step * batch_; i < (step + 1) * batch_; ++i)
    chosen.push_back(example(i / examples_, i % examples_));
  return chosen;
}

Index BatchSampler::example(Index epoch, Index i) const {
  const Random random(seed_, Purpose::shuffling, static_cast<std::uint64_t>(epoch));
  return Permutation(examples_, random)(i);
}

}  // namespace qkv
