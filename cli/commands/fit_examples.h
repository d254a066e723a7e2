#pragma once

#include <filesystem>
#include <span>

#include "cli/commands/ranking.h"

/// Held-out examples of the winner of `qkv fit`, for its card.
namespace qkv::commands {

/// The examples to whose labels the winner gives the lowest probabilities, as its first member
/// reads them in `folds`, its runs of a cross-validation.
Cells worst_examples(std::span<const VariantRun> folds);

/// The words that lower the loss of each label's examples the most, in a fold's run: the sums of
/// their contributions (`LossGradients`) to examples that the fold holds out.
Cells telling_words(const std::filesystem::path& run);

}  // namespace qkv::commands
