#include "train/loop/sharded_optimizer.h"

#include <algorithm>
#include <string_view>

#include "optim/optimizer.h"

namespace qkv {
namespace {

Index size_of(const NamedParameter& named) {
  return named.parameter->shape().size();
}

/// Where each rank's parameters begin: a parameter belongs to the rank in whose equal part of all
/// elements its middle lies.
std::vector<std::size_t> begins_of_ranks(std::span<const NamedParameter> parameters, Index ranks) {
  Index all = 0, before = 0;
  for (const auto& named : parameters) all += size_of(named);
  std::vector<std::size_t> begins(static_cast<std::size_t>(ranks) + 1, parameters.size());
  begins.front() = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Index middle = before + size_of(parameters[i]) / 2;
    before += size_of(parameters[i]);
    const auto owner = static_cast<std::size_t>(middle * ranks / std::max<Index>(all, 1));
    for (std::size_t rank = 1; rank <= owner; ++rank) begins[rank] = std::min(begins[rank], i);
  }
  return begins;
}

/// Calls `use(elements)` for the elements [begin, end) of the parameters, laid end to end.
template <class Use>
void for_each_part(std::span<const NamedParameter> parameters, Index begin, Index end,
                   const Use& use) {
  Index first = 0;
  for (const auto& [path, parameter] : parameters) {
    const Index last = first + parameter->shape().size();
    const Index from = std::max(begin, first), to = std::min(end, last);
    if (from < to) use(*parameter, from - first, to - from);
    first = last;
  }
}

std::span<float> part(std::span<float> values, Index begin, Index length) {
  return values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(length));
}

/// Sends the elements of rank `from` to rank 0.
void send_to_first(const Communicator& ranks, Index from, std::span<float> elements) {
  const auto bytes = std::as_writable_bytes(elements);
  const auto count = static_cast<std::size_t>(ranks.size());
  std::vector<Index> sent(count, 0), received(count, 0);
  if (ranks.rank() == from) sent.front() = std::ssize(bytes);
  if (ranks.rank() == 0) received[static_cast<std::size_t>(from)] = std::ssize(bytes);
  const auto out = ranks.rank() == from ? bytes : std::span<std::byte>();
  const auto in = ranks.rank() == 0 ? bytes : std::span<std::byte>();
  ranks.all_to_all(out, sent, in, received);
}

/// The texts of all ranks, by rank.
std::vector<std::string> all_texts(const Communicator& ranks, const std::string& own) {
  const std::vector<Index> sizes = all_gather(ranks, static_cast<Index>(own.size()));
  std::string all;
  for (Index rank = 0; rank < ranks.size(); ++rank)
    all += rank == ranks.rank()
               ? own
               : std::string(static_cast<std::size_t>(sizes[static_cast<std::size_t>(rank)]), ' ');
  ranks.all_gather(std::as_writable_bytes(std::span(all)), sizes);
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (const Index size : sizes) {
    texts.push_back(all.substr(begin, static_cast<std::size_t>(size)));
    begin += static_cast<std::size_t>(size);
  }
  return texts;
}

/// Splits off the first line of `text`.
std::string next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string line(text.substr(0, end));
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(Run& run, const Communicator& ranks)
    : run_(run),
      ranks_(ranks),
      sharded_(run.config.train.shard_optimizer && ranks.size() > 1),
      begins_(begins_of_ranks(run.parameters, ranks.size())) {
  if (!sharded_) return;
  const auto own = parameters_of(ranks.rank());
  auto state = run.optimizer->state();
  std::erase_if(state, [&](const auto& entry) {
    return std::ranges::find(own, Optimizer::path_of(entry.first), &NamedParameter::path) ==
           own.end();
  });
  run.optimizer->load_state(own, state);
}

std::span<const NamedParameter> ShardedOptimizer::parameters_of(Index rank) const {
  const auto i = static_cast<std::size_t>(rank);
  return std::span(run_.parameters).subspan(begins_[i], begins_[i + 1] - begins_[i]);
}

Index ShardedOptimizer::elements_of(Index rank) const {
  Index count = 0;
  for (const NamedParameter& named : parameters_of(rank)) count += size_of(named);
  return count;
}

void ShardedOptimizer::step(const Gradients& gradients, double learning_rate) {
  if (!sharded_)
    return run_.optimizer->step(run_.parameters, gradients, learning_rate, run_.updates);
  const auto own = parameters_of(ranks_.rank());
  Gradients::Entries entries;
  for (const auto& [path, parameter] : own)
    if (gradients.has(*parameter))
      entries.emplace_back(parameter->node(), gradients.of(*parameter));
  run_.optimizer->step(own, Gradients(std::move(entries)), learning_rate, run_.updates);
  exchange();
}

/// Sends the parameters that each rank updated to all others.
void ShardedOptimizer::exchange() {
  Index most = 0;
  for (Index rank = 0; rank < ranks_.size(); ++rank) most = std::max(most, elements_of(rank));
  for (Index begin = 0; begin < most; begin += bucket_length) {
    std::vector<Index> lengths, sizes;
    Index all = 0, before = 0;
    for (Index rank = 0; rank < ranks_.size(); ++rank) {
      lengths.push_back(std::clamp<Index>(elements_of(rank) - begin, 0, bucket_length));
      sizes.push_back(lengths.back() * static_cast<Index>(sizeof(float)));
      if (rank < ranks_.rank()) before += lengths.back();
      all += lengths.back();
    }
    bucket_.resize(static_cast<std::size_t>(all));
    const auto length_of = [&](Index rank) { return lengths[static_cast<std::size_t>(rank)]; };
    Index at = before;
    for_each_part(parameters_of(ranks_.rank()), begin, begin + length_of(ranks_.rank()),
                  [&](Parameter& parameter, Index from, Index count) {
                    std::ranges::copy_n(parameter.value().data<float>().begin() + from, count,
                                        part(bucket_, at, count).begin());
                    at += count;
                  });
    ranks_.all_gather(std::as_writable_bytes(std::span(bucket_)), sizes);
    at = 0;
    for (Index rank = 0; rank < ranks_.size(); ++rank)
      for_each_part(parameters_of(rank), begin, begin + length_of(rank),
                    [&](Parameter& parameter, Index from, Index count) {
                      if (rank != ranks_.rank() && !parameter.frozen())
                        std::ranges::copy(part(bucket_, at, count),
                                          parameter.mutable_data<float>().begin() + from);
                      at += count;
                    });
  }
}

void ShardedOptimizer::gather(std::map<std::string, Tensor>& state) const {
  if (!sharded_) return;
  const auto own = run_.optimizer->state();
  std::string names;
  for (const auto& [name, value] : own) names += name + "\n";
  const std::vector<std::string> all = all_texts(ranks_, names);
  for (Index rank = 1; rank < ranks_.size(); ++rank)
    for (std::string_view text = all[static_cast<std::size_t>(rank)]; !text.empty();) {
      const std::string name = next_line(text);
      const auto named =
          std::ranges::find(run_.parameters, Optimizer::path_of(name), &NamedParameter::path);
      Tensor value = rank == ranks_.rank()
                         ? copy_if_shared(own.at(name))
                         : Tensor::empty(named->parameter->shape(), DType::float32);
      const auto elements = value.mutable_data<float>();
      for (Index begin = 0; begin < value.size(); begin += bucket_length)
        send_to_first(ranks_, rank,
                      part(elements, begin, std::min(bucket_length, value.size() - begin)));
      if (ranks_.rank() == 0) state[name] = std::move(value);
    }
}

}  // namespace qkv
