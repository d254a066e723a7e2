#include "train/tasks/splits.h"

#include <cmath>

#include "core/error.h"
#include "train/config/task_kinds.h"

namespace qkv {

const std::string& source_of(const Config& config) {
  return config.task.data.empty() ? config.task.train : config.task.data;
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
                           all = of_file(source_of(config));
  const auto drawn = [&](double fraction, const std::string& file) {
    const bool is_drawn = !task.data.empty() && file.empty();
    return is_drawn ? std::lround(fraction * static_cast<double>(all.size())) : 0;
  };
  const Index drawn_valid = drawn(task.valid_share, task.valid),
              drawn_test = drawn(task.test_share, task.test);
  SplitRows splits = task.data.empty() ? SplitRows{all, {}, {}}
                                       : drawn_splits(all, drawn_valid, drawn_test, config.seed);
  require<UserError>(!splits[0].empty(),
                     "{}: task.valid_share and task.test_share leave no example to learn from",
                     source_of(config));
  if (!task.valid.empty()) splits[1] = valid;
  if (!task.test.empty()) splits[2] = test;

  std::vector<std::int32_t> labels(static_cast<std::size_t>(rows.size()));
  if (row_of(task_kinds(), task.kind).traits.has_one_label) {
    for (Index row = 0; row < rows.size(); ++row)
      labels[static_cast<std::size_t>(row)] = rows.marks[row].front().label;
    const bool is_data = !task.data.empty();
    keep_labels_in_training(
        splits, {false, is_data && task.valid.empty(), is_data && task.test.empty()}, labels);
  }
  if (task.folds == 0) return splits;
  const Index count = std::ssize(splits[0]);
  require<UserError>(task.folds <= count,
                     "{}: task.fold with {} parts needs as many training examples; there are {}",
                     source_of(config), task.folds, count);
  hold_out_fold(splits, labels, task.folds, task.fold, config.seed);
  return splits;
}

}  // namespace qkv
