#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "datasets/corpus.h"
#include "train/config/config.h"

namespace qkv {

/// `begin` up to `end`.
std::vector<Index> index_range(Index begin, Index end);

/// The indices of the train, valid and test examples, in order.
using SplitRows = std::array<std::vector<Index>, 3>;

/// The file that training examples come from, for errors.
const std::string& source_of(const TaskOptions& task);

/// Each split from its file; of `task.data`, fractions drawn by the seed become valid and test
/// where these have no file, and the rest train. With `task.fold` a part of the training examples
/// takes the place of the test examples. Where a row has one label, drawn splits leave no label
/// without a training example, and each fold has its fraction of every label. `read` adds the rows
/// of a file. Throws UserError when no training example is left, or there are fewer than folds.
SplitRows read_splits(const Config& config, const Rows& rows,
                      const std::function<void(const std::string& file)>& read);

}  // namespace qkv
