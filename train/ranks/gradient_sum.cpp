#include "train/ranks/gradient_sum.h"

#include <algorithm>
#include <array>
#include <utility>

namespace qkv {
namespace {

template <class T>
void all_gather(const Communicator& ranks, std::vector<T>& values,
                const std::vector<Index>& sizes) {
  ranks.all_gather(std::as_writable_bytes(std::span(values)), sizes);
}

void add_elements(std::span<float> sum, std::span<const float> terms) {
  parallel_for(partition(std::ssize(sum), 1), [=](Index begin, Index end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      sum[i] += terms[i];
  });
}

std::span<float> range(std::vector<float>& values, Index begin, Index length) {
  return std::span(values).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(length));
}

/// Calls `use(entry, from, at, length)` for the entries that have elements in [begin, end):
/// `length` elements, the first of which is the entry's element `from` and element `at` of the
/// range.
template <class Entry, class Use>
void for_each_part(std::span<Entry> entries, Index begin, Index end, const Use& use) {
  auto entry = std::ranges::upper_bound(entries, begin, {}, &Entry::end);
  for (Index at = begin; at < end; ++entry) {
    const Index stop = std::min(end, entry->end);
    use(*entry, at - entry->begin, at - begin, stop - at);
    at = stop;
  }
}

/// The tensor for a sum over all ranks. It may be the rank's first partial sum, whose elements are
/// read before the sum is written.
Tensor storage_of_sum(const std::vector<Tensor>& partials, const Shape& shape) {
  const bool donates = !partials.empty() && partials.front() && partials.front().unshared();
  return donates ? partials.front() : Tensor::empty(shape, DType::float32);
}

}  // namespace

StepStatistics& StepStatistics::operator+=(const StepStatistics& other) {
  loss += other.loss;
  tokens += other.tokens;
  weight += other.weight;
  forward_ms += other.forward_ms;
  backward_ms += other.backward_ms;
  return *this;
}

StepGradients& StepGradients::operator+=(StepGradients other) {
  StepStatistics::operator+=(other);
  gradients += std::move(other.gradients);
  return *this;
}

StepGradients GradientSum::sum(Index shards, std::vector<PartialSum<StepGradients>> own) {
  divide(shards);
  std::vector<StepGradients> sums = tree_sums(own_subtrees(), own);
  StepGradients total;
  static_cast<StepStatistics&>(total) = sum_of_statistics(sums);
  std::vector<Entry> entries = entries_of(sums);
  const std::vector<bool> has_gradient = present(entries);
  const Index all = entries.empty() ? 0 : entries.back().end;
  for (Index begin = 0; begin < all; begin += bucket_length)
    exchange(entries, begin, std::min(begin + bucket_length, all));
  Gradients::Entries gradients;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (has_gradient[i]) gradients.emplace_back(entries[i].parameter, std::move(entries[i].sum));
  entries.clear();
  total.gradients = Gradients(std::move(gradients));
  return total;
}

void GradientSum::divide(Index shards) {
  const Chunks by_rank{shards, ranks_.size()};
  shards_ = shards;
  subtrees_.clear();
  counts_.clear();
  for (Index rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) first_own_ = subtrees_.size();
    const auto found = subtrees(by_rank.begin(rank), by_rank.end(rank));
    std::ranges::copy(found, std::back_inserter(subtrees_));
    counts_.push_back(std::ssize(found));
  }
}

std::span<const Subtree> GradientSum::own_subtrees() const {
  return std::span(subtrees_).subspan(
      first_own_, static_cast<std::size_t>(counts_[static_cast<std::size_t>(ranks_.rank())]));
}

/// Moves the gradients of the parameters that are not frozen out of this rank's partial sums.
std::vector<GradientSum::Entry> GradientSum::entries_of(std::vector<StepGradients>& own) const {
  std::vector<Entry> entries;
  Index begin = 0;
  for (const auto& [path, parameter] : parameters_) {
    if (parameter->frozen()) continue;
    std::vector<Tensor> partials;
    partials.reserve(own.size());
    for (StepGradients& sum : own) partials.push_back(sum.gradients.release(parameter->node()));
    const Index end = begin + parameter->shape().size();
    Tensor sum = storage_of_sum(partials, parameter->shape());
    entries.push_back({parameter->node(), begin, end, std::move(partials), std::move(sum)});
    begin = end;
  }
  return entries;
}

/// The blocks of the ranks in an exchange of so many bytes for each partial sum.
std::vector<Index> GradientSum::block_sizes(std::size_t bytes) const {
  std::vector<Index> sizes = counts_;
  for (Index& size : sizes) size *= static_cast<Index>(bytes);
  return sizes;
}

StepStatistics GradientSum::sum_of_statistics(std::span<const StepGradients> own) const {
  std::vector<StepStatistics> all(subtrees_.size());
  std::ranges::copy(own, all.begin() + static_cast<Index>(first_own_));
  all_gather(ranks_, all, block_sizes(sizeof(StepStatistics)));
  std::vector<PartialSum<StepStatistics>> sums;
  for (std::size_t i = 0; i < all.size(); ++i) sums.push_back({subtrees_[i], all[i]});
  return tree_sums(std::array{Subtree{0, shards_}}, sums).front();
}

/// Whether some rank has a gradient, for each entry.
std::vector<bool> GradientSum::present(std::span<const Entry> entries) const {
  const std::size_t row = entries.size();
  std::vector<char> all(subtrees_.size() * row);
  for (std::size_t i = 0; i < own_subtrees().size(); ++i)
    for (std::size_t j = 0; j < row; ++j)
      all[(first_own_ + i) * row + j] = static_cast<bool>(entries[j].partials[i]);
  all_gather(ranks_, all, block_sizes(row));
  std::vector<bool> any(row);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i]) any[i % row] = true;
  return any;
}

void GradientSum::exchange(std::span<Entry> entries, Index begin, Index end) {
  const Chunks slices{end - begin, ranks_.size()};
  const auto length = [&](Index rank) { return slices.end(rank) - slices.begin(rank); };
  const Index own_length = length(ranks_.rank());
  const std::size_t own_sums = own_subtrees().size();
  constexpr Index bytes = sizeof(float);

  sent_.resize(own_sums * static_cast<std::size_t>(end - begin));
  std::vector<Index> sent_sizes, slice_sizes;
  Index sent = 0;
  for (Index rank = 0; rank < ranks_.size(); ++rank) {
    for (std::size_t i = 0; i < own_sums; ++i) {
      for_each_part(entries, begin + slices.begin(rank), begin + slices.end(rank),
                    [&](const Entry& entry, Index from, Index at, Index count) {
                      const auto to = range(sent_, sent + at, count);
                      if (const Tensor& partial = entry.partials[i])
                        std::ranges::copy_n(partial.data<float>().begin() + from, count,
                                            to.begin());
                      else
                        std::ranges::fill(to, -0.0F);  // x + -0 is x, also for 0 and -0
                    });
      sent += length(rank);
    }
    sent_sizes.push_back(static_cast<Index>(own_sums) * length(rank) * bytes);
    slice_sizes.push_back(length(rank) * bytes);
  }
  received_.resize(subtrees_.size() * static_cast<std::size_t>(own_length));
  ranks_.all_to_all(std::as_bytes(std::span(sent_)), sent_sizes,
                    std::as_writable_bytes(std::span(received_)),
                    block_sizes(static_cast<std::size_t>(own_length * bytes)));

  std::vector<PartialSum<std::span<float>>> sums;
  for (std::size_t i = 0; i < subtrees_.size(); ++i)
    sums.push_back(
        {subtrees_[i], range(received_, static_cast<Index>(i) * own_length, own_length)});
  TakeInOrder take(sums);
  const auto total = tree_sum({0, shards_}, take, add_elements);
  bucket_.resize(static_cast<std::size_t>(end - begin));
  std::ranges::copy(total, range(bucket_, slices.begin(ranks_.rank()), own_length).begin());
  all_gather(ranks_, bucket_, slice_sizes);

  for_each_part(entries, begin, end, [&](Entry& entry, Index from, Index at, Index count) {
    std::ranges::copy(range(bucket_, at, count),
                      entry.sum.shared_mutable_data<float>().begin() + from);
  });
}

}  // namespace qkv
