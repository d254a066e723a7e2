#include "train/tasks/splits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "core/random.h"
#include "train/config/task_kinds.h"

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

/// Draws `valid` and `test` of the examples `all` by the seed; the rest trains.
SplitRows drawn_splits(std::span<const Index> all, Index valid, Index test, std::uint64_t seed) {
  SplitRows splits;
  Index next = 0;
  for (const Index example : shuffled(all, seed)) {
    splits[next < valid ? 1 : next < valid + test ? 2 : 0].push_back(example);
    ++next;
  }
  return splits;
}

/// Moves the examples whose label no training example has from the splits that were drawn to the
/// training split, as those of a label that occurs once. `labels`: the label of each example.
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

/// Cross-validation: the training examples of each label, in an order drawn by the seed, are dealt
/// to the folds in turn; those of `fold`, counted from 1, take the place of the test examples, the
/// others train, as the only example of a label always does.
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

}  // namespace

std::vector<Index> index_range(Index begin, Index end) {
  std::vector<Index> indices(static_cast<std::size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

const std::string& source_of(const TaskOptions& task) {
  return task.data.empty() ? task.train : task.data;
}

SplitRows read_splits(const Config& config, const Rows& rows,
                      const std::function<void(const std::string& file)>& read) {
  const TaskOptions& task = config.task;
  const auto of_file = [&](const std::string& file) {
    const Index begin = rows.size();
    if (!file.empty()) read(file);
    return index_range(begin, rows.size());
  };
  const std::vector<Index> valid = of_file(task.valid), test = of_file(task.test),
                           all = of_file(source_of(task));
  const bool is_split = !task.data.empty();
  const std::array is_drawn = {false, is_split && task.valid.empty(),
                               is_split && task.test.empty()};
  const auto drawn = [&](std::size_t split, double fraction) {
    return is_drawn[split] ? std::lround(fraction * static_cast<double>(all.size())) : 0;
  };
  SplitRows splits = is_split ? drawn_splits(all, drawn(1, task.valid_share),
                                             drawn(2, task.test_share), config.seed)
                              : SplitRows{all, {}, {}};
  require<UserError>(!splits[0].empty(),
                     "{}: task.valid_share and task.test_share leave no example to learn from",
                     source_of(task));
  if (!is_drawn[1]) splits[1] = valid;
  if (!is_drawn[2]) splits[2] = test;

  std::vector<std::int32_t> labels(static_cast<std::size_t>(rows.size()));
  if (row_of(task_kinds(), task.kind).traits.has_one_label) {
    for (Index row = 0; row < rows.size(); ++row)
      labels[static_cast<std::size_t>(row)] = rows.marks[row].front().label;
    keep_labels_in_training(splits, is_drawn, labels);
  }
  if (task.folds == 0) return splits;
  const Index count = std::ssize(splits[0]);
  require<UserError>(task.folds <= count,
                     "{}: task.fold with {} parts needs as many training examples; there are {}",
                     source_of(task), task.folds, count);
  hold_out_fold(splits, labels, task.folds, task.fold, config.seed);
  return splits;
}

}  // namespace qkv
