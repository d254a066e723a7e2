#include "train/gradient_sum.h"

#include <algorithm>
#include <numeric>

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

}  // namespace

StepStatistics& StepStatistics::operator+=(const StepStatistics& other) {
  loss += other.loss;
  tokens += other.tokens;
  targets += other.targets;
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
    : parameters_(parameters), ranks_(ranks) {
  for (const auto& [path, parameter] : parameters)
    positions_[parameter->node()] = static_cast<std::int32_t>(positions_.size());
}

StepGradients GradientSum::operator()(std::vector<PartialSum<StepGradients>> own, Index shards) {
  if (ranks_.size() == 1) return std::move(own.front().value);
  list_partial_sums(shards);
  StepGradients sum;
  static_cast<StepStatistics&>(sum) = sum_of_statistics(own);
  std::vector<Gradients::Entries> entries;
  entries.reserve(own.size());
  for (auto& partial : own) entries.push_back(partial.value.gradients.release());
  sum.gradients = sum_of_gradients(std::move(entries));
  return sum;
}

void GradientSum::list_partial_sums(Index shards) {
  if (shards == shards_) return;
  shards_ = shards;
  subtrees_.clear();
  counts_.clear();
  const Chunks by_rank = shards_by_rank(shards);
  for (Index rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) first_own_ = subtrees_.size();
    const auto found = subtrees(by_rank.begin(rank), by_rank.end(rank));
    std::ranges::copy(found, std::back_inserter(subtrees_));
    counts_.push_back(std::ssize(found));
  }
}

/// A rank's blocks in an exchange of so many bytes of each partial sum.
std::vector<Index> GradientSum::block_sizes(std::size_t bytes) const {
  std::vector<Index> sizes = counts_;
  for (Index& size : sizes) size *= static_cast<Index>(bytes);
  return sizes;
}

StepStatistics GradientSum::sum_of_statistics(
    const std::vector<PartialSum<StepGradients>>& own) const {
  std::vector<StepStatistics> all(subtrees_.size());
  for (std::size_t i = 0; i < own.size(); ++i) all[first_own_ + i] = own[i].value;
  all_gather(ranks_, all, block_sizes(sizeof(StepStatistics)));
  std::vector<PartialSum<StepStatistics>> sums;
  for (std::size_t i = 0; i < all.size(); ++i) sums.push_back({subtrees_[i], all[i]});
  TakeInOrder take(sums);
  return tree_sum({0, shards_}, take,
                  [](StepStatistics& sum, const StepStatistics& term) { sum += term; });
}

/// As the sum of all partial sums in one process would have it: the order of the first, then what
/// only later ones have.
void GradientSum::agree_on_order(const std::vector<Gradients::Entries>& own) {
  constexpr std::int32_t none = -1;
  const std::size_t row = parameters_.size();
  std::vector<std::int32_t> orders(subtrees_.size() * row, none);
  for (std::size_t i = 0; i < own.size(); ++i)
    std::ranges::transform(own[i], orders.begin() + static_cast<Index>((first_own_ + i) * row),
                           [&](const auto& entry) { return positions_.at(entry.first); });
  all_gather(ranks_, orders, block_sizes(row * sizeof(std::int32_t)));
  order_.clear();
  std::vector<bool> known(row);
  for (const std::int32_t position : orders) {
    if (position == none || known[static_cast<std::size_t>(position)]) continue;
    known[static_cast<std::size_t>(position)] = true;
    order_.push_back(position);
  }
  begins_ = {0};
  for (std::size_t i = 0; i < order_.size(); ++i)
    begins_.push_back(begins_.back() + parameter(i).shape().size());
}

const Parameter& GradientSum::parameter(std::size_t i) const {
  return *parameters_[static_cast<std::size_t>(order_[i])].parameter;
}

GradientSum::Parts GradientSum::parts_of(Gradients::Entries entries) const {
  Parts parts(order_.size());
  for (auto& [node, gradient] : entries) {
    const auto found = std::ranges::find(order_, positions_.at(node));
    parts[static_cast<std::size_t>(found - order_.begin())] = std::move(gradient);
  }
  return parts;
}

Gradients GradientSum::sum_of_gradients(std::vector<Gradients::Entries> own) {
  agree_on_order(own);
  std::vector<Parts> parts;
  parts.reserve(own.size());
  for (auto& entries : own) parts.push_back(parts_of(std::move(entries)));
  // The sum may replace this rank's first partial sum: elements are read before they are written.
  Parts sum;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const bool donates = !parts.empty() && parts.front()[i] && parts.front()[i].unshared();
    sum.push_back(donates ? parts.front()[i] : Tensor::empty(parameter(i).shape(), DType::float32));
  }
  for (Index begin = 0; begin < begins_.back(); begin += bucket_length)
    sum_bucket(parts, sum, begin, std::min(begin + bucket_length, begins_.back()));
  Gradients::Entries entries;
  for (std::size_t i = 0; i < sum.size(); ++i)
    entries.emplace_back(parameter(i).node(), std::move(sum[i]));
  return Gradients(std::move(entries));
}

/// Calls `use(i, from, at, length)` for the gradients that have elements there: `length` elements
/// of gradient i of `order_`, the first of which is its element `from` and element `at` of the
/// range.
template <class Use>
void GradientSum::for_each_part(Index begin, Index end, const Use& use) const {
  auto next = std::ranges::upper_bound(begins_, begin) - begins_.begin() - 1;
  for (Index at = begin; at < end; ++next) {
    const auto i = static_cast<std::size_t>(next);
    const Index stop = std::min(end, begins_[i + 1]);
    use(i, at - begins_[i], at - begin, stop - at);
    at = stop;
  }
}

void GradientSum::sum_bucket(const std::vector<Parts>& own, Parts& sum, Index begin, Index end) {
  const Chunks slices{end - begin, ranks_.size()};
  const auto length = [&](Index rank) { return slices.end(rank) - slices.begin(rank); };
  const Index own_length = length(ranks_.rank());
  constexpr Index bytes = sizeof(float);

  sent_.resize(own.size() * static_cast<std::size_t>(end - begin));
  std::vector<Index> sent_sizes, slice_sizes;
  Index sent = 0;
  for (Index rank = 0; rank < ranks_.size(); ++rank) {
    for (const Parts& parts : own) {
      for_each_part(begin + slices.begin(rank), begin + slices.end(rank),
                    [&](std::size_t i, Index from, Index at, Index count) {
                      const auto to = range(sent_, sent + at, count);
                      if (parts[i])
                        std::ranges::copy_n(parts[i].data<float>().begin() + from, count,
                                            to.begin());
                      else
                        std::ranges::fill(to, -0.0F);  // x + -0 is x, also for 0 and -0
                    });
      sent += length(rank);
    }
    sent_sizes.push_back(std::ssize(own) * length(rank) * bytes);
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

  for_each_part(begin, end, [&](std::size_t i, Index from, Index at, Index count) {
    std::ranges::copy(range(bucket_, at, count),
                      sum[i].shared_mutable_data<float>().begin() + from);
  });
}

}  // namespace qkv
