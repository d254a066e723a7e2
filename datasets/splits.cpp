#include "datasets/splits.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/random.h"

namespace qkv {
namespace {

std::int32_t label_of(std::span<const std::int32_t> labels, Index example) {
  return labels[static_cast<std::size_t>(example)];
}

/// The examples in an order that the seed draws.
std::vector<Index> shuffled(std::span<const Index> examples, std::uint64_t seed) {
  std::vector<Index> order = Random(seed, Purpose::shuffling).permutation(std::ssize(examples));
  for (Index& i : order) i = examples[static_cast<std::size_t>(i)];
  return order;
}

}  // namespace

std::vector<Index> index_range(Index begin, Index end) {
  std::vector<Index> indices(static_cast<std::size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

SplitRows drawn_splits(std::span<const Index> all, Index valid, Index test, std::uint64_t seed) {
  SplitRows splits;
  Index next = 0;
  for (const Index example : shuffled(all, seed)) {
    splits[next < valid ? 1 : next < valid + test ? 2 : 0].push_back(example);
    ++next;
  }
  return splits;
}

void keep_labels_in_training(SplitRows& splits, std::array<bool, 3> is_drawn,
                             std::span<const std::int32_t> labels) {
  std::set<std::int32_t> known;
  for (const Index example : splits[0]) known.insert(label_of(labels, example));
  for (std::size_t split = 1; split < splits.size(); ++split)
    std::erase_if(splits[split], [&](Index example) {
      if (!is_drawn[split] || known.contains(label_of(labels, example))) return false;
      splits[0].push_back(example);
      return true;
    });
}

void hold_out_fold(SplitRows& splits, std::span<const std::int32_t> labels, Index folds, Index fold,
                   std::uint64_t seed) {
  std::map<std::int32_t, std::vector<Index>> by_label;
  for (const Index example : shuffled(splits[0], seed))
    by_label[label_of(labels, example)].push_back(example);
  splits[0].clear();
  splits[2].clear();
  Index dealt = 0;
  for (const auto& [label, examples] : by_label)
    for (const Index example : examples) {
      const bool held_out = examples.size() > 1 && dealt++ % folds == fold - 1;
      splits[held_out ? 2 : 0].push_back(example);
    }
  for (auto* split : {&splits[0], &splits[2]}) std::ranges::sort(*split);
}

}  // namespace qkv
