#pragma once

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/random.h"
#include "train/config/config.h"

namespace qkv {

/// The file that training examples come from, for errors.
inline const std::string& source_of(const Config& config) {
  return config.task.data.empty() ? config.task.train : config.task.data;
}

/// Train, valid and test examples: each from its file. Of `task.data`, fractions drawn by the seed
/// become valid and test where these have no file, and the rest train. `read` gives the examples of
/// a file. Throws UserError when no training example is left.
template <class Read>
auto read_splits(const Config& config, Read read) {
  const TaskOptions& task = config.task;
  using Examples = decltype(read(task.train));
  const auto of_file = [&](const std::string& file) {
    return file.empty() ? Examples() : read(file);
  };
  std::array<Examples, 3> splits = {Examples(), of_file(task.valid), of_file(task.test)};
  if (task.data.empty()) {
    splits[0] = of_file(task.train);
    return splits;
  }
  const Examples all = read(task.data);
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
