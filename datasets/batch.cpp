#include "datasets/batch.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/random.h"

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

BatchSampler::BatchSampler(Index examples, Index batch, std::uint64_t seed)
    : examples_(examples), batch_(batch), seed_(seed) {
  require<ValueError>(examples > 0 && batch > 0,
                      "batches need examples: {} examples, batches of {}", examples, batch);
}

std::vector<Index> BatchSampler::at(std::int64_t step) {
  require<ValueError>(step >= 0 && step < std::numeric_limits<Index>::max() / batch_,
                      "[batches] step {} is not in [0, 2^63 / {})", step, batch_);
  std::vector<Index> chosen;
  for (Index i = step * batch_; i < (step + 1) * batch_; ++i) {
    if (i / examples_ != epoch_) {
      epoch_ = i / examples_;
      order_ = Random(seed_, Purpose::shuffling, static_cast<std::uint64_t>(epoch_))
                   .permutation(examples_);
    }
    chosen.push_back(order_[static_cast<std::size_t>(i % examples_)]);
  }
  return chosen;
}

}  // namespace qkv
