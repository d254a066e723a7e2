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

bool contains(const std::vector<PartialSum<Gradients>>& terms, Subtree subtree) {
  return std::ranges::find(terms, subtree, &PartialSum<Gradients>::subtree) != terms.end();
}

std::span<float> range(std::vector<float>& values, Index begin, Index length) {
  return std::span(values).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(length));
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

GradientSum::GradientSum(std::span<const NamedParameter> parameters, const Communicator& ranks)
    : ranks_(ranks) {
  Index begin = 0;
  for (auto named = parameters.rbegin(); named != parameters.rend(); ++named) {
    const Parameter* const parameter = named->parameter;
    if (parameter->frozen()) continue;
    positions_[parameter->node()] = entries_.size();
    const Index end = begin + parameter->shape().size();
    entries_.push_back({parameter, begin, end, {}, 0, {}, {}});
    begin = end;
  }
}

void GradientSum::begin(Index shards) {
  const Chunks by_rank = shards_by_rank(shards);
  shards_ = shards;
  own_shards_ = by_rank.end(ranks_.rank()) - by_rank.begin(ranks_.rank());
  subtrees_.clear();
  counts_.clear();
  for (Index rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) first_own_ = subtrees_.size();
    const auto found = subtrees(by_rank.begin(rank), by_rank.end(rank));
    std::ranges::copy(found, std::back_inserter(subtrees_));
    counts_.push_back(std::ssize(found));
  }
  statistics_.clear();
  for (Entry& entry : entries_) {
    entry.terms.clear();
    entry.added_shards = 0;
  }
  error_ = nullptr;
  cancelled_ = false;
  thread_ = JoiningThread([this] {
    try {
      exchange();
    } catch (...) {
      error_ = std::current_exception();
    }
  });
}

void GradientSum::add(PartialSum<StepGradients> sum) {
  const std::scoped_lock lock(mutex_);
  statistics_.push_back({sum.subtree, sum.value});
  for (Entry& entry : entries_)
    if (!complete(entry) && !contains(entry.terms, sum.subtree))
      add(entry, sum.subtree, sum.value.gradients.release(entry.parameter->node()));
}

void GradientSum::add(Subtree shard, const Node* parameter, Tensor gradient) {
  const std::scoped_lock lock(mutex_);
  add(entries_[positions_.at(parameter)], shard, std::move(gradient));
}

void GradientSum::add(Entry& entry, Subtree subtree, Tensor gradient) {
  Gradients::Entries one;
  if (gradient) one.emplace_back(entry.parameter->node(), std::move(gradient));
  entry.terms.push_back({subtree, Gradients(std::move(one))});
  entry.added_shards += subtree.count;
  if (complete(entry)) changed_.notify_one();
}

StepGradients GradientSum::finish() {
  thread_.join();
  if (error_) std::rethrow_exception(error_);
  StepGradients sum;
  static_cast<StepStatistics&>(sum) = sum_of_statistics();
  sum.gradients = sum_of_gradients();
  return sum;
}

void GradientSum::cancel() {
  {
    const std::scoped_lock lock(mutex_);
    cancelled_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::span<const Subtree> GradientSum::own_subtrees() const {
  return std::span(subtrees_).subspan(
      first_own_, static_cast<std::size_t>(counts_[static_cast<std::size_t>(ranks_.rank())]));
}

/// A rank's blocks in an exchange of so many bytes of each partial sum.
std::vector<Index> GradientSum::block_sizes(std::size_t bytes) const {
  std::vector<Index> sizes = counts_;
  for (Index& size : sizes) size *= static_cast<Index>(bytes);
  return sizes;
}

StepStatistics GradientSum::sum_of_statistics() {
  std::vector<StepStatistics> all(subtrees_.size());
  std::ranges::copy(tree_sums(own_subtrees(), statistics_),
                    all.begin() + static_cast<Index>(first_own_));
  all_gather(ranks_, all, block_sizes(sizeof(StepStatistics)));
  std::vector<PartialSum<StepStatistics>> sums;
  for (std::size_t i = 0; i < all.size(); ++i) sums.push_back({subtrees_[i], all[i]});
  return tree_sums(std::array{Subtree{0, shards_}}, sums).front();
}

/// Of the parameters that have a gradient on some rank.
Gradients GradientSum::sum_of_gradients() {
  const std::size_t row = entries_.size();
  std::vector<char> present(subtrees_.size() * row);
  for (std::size_t i = 0; i < own_subtrees().size(); ++i)
    for (std::size_t j = 0; j < row; ++j)
      present[(first_own_ + i) * row + j] = static_cast<bool>(entries_[j].partial_sums[i]);
  all_gather(ranks_, present, block_sizes(row));
  Gradients::Entries sums;
  for (std::size_t j = 0; j < row; ++j) {
    entries_[j].partial_sums.clear();
    const Tensor sum = std::exchange(entries_[j].sum, {});
    for (std::size_t i = 0; i < subtrees_.size(); ++i) {
      if (!present[i * row + j]) continue;
      sums.emplace_back(entries_[j].parameter->node(), sum);
      break;
    }
  }
  return Gradients(std::move(sums));
}

void GradientSum::exchange() {
  const Index all = entries_.empty() ? 0 : entries_.back().end;
  auto next = entries_.begin();
  for (Index begin = 0; begin < all; begin += bucket_length) {
    const Index end = std::min(begin + bucket_length, all);
    for (; next != entries_.end() && next->begin < end; ++next) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return cancelled_ || complete(*next); });
      if (!complete(*next)) return;
      lock.unlock();
      add_terms(*next);
    }
    exchange_bucket(begin, end);
  }
}

/// Of a complete entry, to which nothing is added any more.
void GradientSum::add_terms(Entry& entry) const {
  entry.partial_sums.clear();
  for (Gradients& sum : tree_sums(own_subtrees(), entry.terms))
    entry.partial_sums.push_back(sum.release(entry.parameter->node()));
  // The sum may replace this rank's first partial sum: elements are read before they are written.
  const bool donates = !entry.partial_sums.empty() && entry.partial_sums.front() &&
                       entry.partial_sums.front().unshared();
  entry.sum = donates ? entry.partial_sums.front()
                      : Tensor::empty(entry.parameter->shape(), DType::float32);
}

/// Calls `use(entry, from, at, length)` for the entries that have elements there: `length`
/// elements, the first of which is the entry's element `from` and element `at` of the range.
template <class Use>
void GradientSum::for_each_part(Index begin, Index end, const Use& use) {
  auto entry = std::ranges::upper_bound(entries_, begin, {}, &Entry::end);
  for (Index at = begin; at < end; ++entry) {
    const Index stop = std::min(end, entry->end);
    use(*entry, at - entry->begin, at - begin, stop - at);
    at = stop;
  }
}

void GradientSum::exchange_bucket(Index begin, Index end) {
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
      for_each_part(begin + slices.begin(rank), begin + slices.end(rank),
                    [&](const Entry& entry, Index from, Index at, Index count) {
                      const auto to = range(sent_, sent + at, count);
                      if (const Tensor& partial = entry.partial_sums[i])
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

  for_each_part(begin, end, [&](Entry& entry, Index from, Index at, Index count) {
    std::ranges::copy(range(bucket_, at, count),
                      entry.sum.shared_mutable_data<float>().begin() + from);
  });
}

}  // namespace qkv
