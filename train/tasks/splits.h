#pragma once

#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/random.h"
#include "train/config/config.h"

namespace qkv {

/// The file that training examples come from, for errors.
inline const std::string& source_of(const Config& config) {
  return config.task.data.empty() ? config.task.train : config.task.data;
}

/// `begin` up to `end`.
inline std::vector<Index> index_range(Index begin, Index end) {
  std::vector<Index> indices(static_cast<std::size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

/// The indices of the train, valid and test examples, in order.
using SplitRows = std::array<std::vector<Index>, 3>;

/// Each from its file; of `task.data`, fractions drawn by the seed become valid and test where
/// these have no file, and the rest train. `read` appends the examples of a file to those that were
/// read before, and returns how many there are then. Throws UserError when no training example is
/// left.
template <class Read>
SplitRows read_splits(const Config& config, Read read) {
  const TaskOptions& task = config.task;
  Index known = 0;
  const auto of_file = [&](const std::string& file) {
    const Index begin = known;
    if (!file.empty()) known = read(file);
    return index_range(begin, known);
  };
  SplitRows splits;
  splits[1] = of_file(task.valid);
  splits[2] = of_file(task.test);
  if (task.data.empty()) {
    splits[0] = of_file(task.train);
    return splits;
  }
  const std::vector<Index> all = of_file(task.data);
  const auto count = [&](double fraction, const std::string& file) {
    return file.empty()
               ? static_cast<std::size_t>(std::lround(fraction * static_cast<double>(all.size())))
               : 0;
  };
  const std::size_t valid = count(task.valid_share, task.valid),
                    test = valid + count(task.test_share, task.test);
  std::size_t next = 0;
  for (const Index i : Random(config.seed, Purpose::shuffling).permutation(std::ssize(all))) {
    splits[next < valid ? 1 : next < test ? 2 : 0].push_back(all[static_cast<std::size_t>(i)]);
    ++next;
  }
  require<UserError>(!splits[0].empty(),
                     "{}: task.valid_share and task.test_share leave no example to learn from",
                     task.data);
  return splits;
}

}  // namespace qkv
