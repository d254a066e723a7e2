#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/shape.h"

namespace qkv {

/// `begin` up to `end`.
std::vector<Index> index_range(Index begin, Index end);

/// The indices of the train, valid and test examples, in order.
using SplitRows = std::array<std::vector<Index>, 3>;

/// Draws `valid` and `test` of the examples `all` by the seed; the rest trains.
SplitRows drawn_splits(std::span<const Index> all, Index valid, Index test, std::uint64_t seed);

/// Moves the examples whose label no training example has from the splits that were drawn to the
/// training split, as those of a label that occurs once. `labels`: the label of each example.
void keep_labels_in_training(SplitRows& splits, std::array<bool, 3> is_drawn,
                             std::span<const std::int32_t> labels);

/// Cross-validation: the training examples of each label, in an order drawn by the seed, are dealt
/// to the folds in turn; those of `fold`, counted from 1, take the place of the test examples, the
/// others train, as the only example of a label always does.
void hold_out_fold(SplitRows& splits, std::span<const std::int32_t> labels, Index folds, Index fold,
                   std::uint64_t seed);

}  // namespace qkv
