#pragma once

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/random.h"
#include "train/config/config.h"

namespace qkv {

/// Train, valid and test examples: each from its file. Of `task.data`, shares chosen by the seed
/// become valid and test where these have no file, and the rest train. `read` gives the examples of
/// a file.
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
  const auto share = [&](double part, const std::string& file) {
    return file.empty()
               ? static_cast<std::size_t>(std::lround(part * static_cast<double>(all.size())))
               : 0;
  };
  const std::size_t valid = share(task.valid_share, task.valid),
                    test = valid + share(task.test_share, task.test);
  std::size_t next = 0;
  for (const Index i : Random(config.seed, Purpose::shuffling).permutation(std::ssize(all))) {
    splits[next < valid ? 1 : next < test ? 2 : 0].push_back(all[static_cast<std::size_t>(i)]);
    ++next;
  }
  return splits;
}

}  // namespace qkv
