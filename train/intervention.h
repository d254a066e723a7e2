#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/run.h"

namespace qkv {

/// What is done to a trained model, or to what it reads, to see whether a claim rests on it: a
/// claim about attention that survives it was not about attention (Jain & Wallace 2019, "Attention
/// is not Explanation").
enum class Intervention { without_positions, uniform_attention, shuffled_queries, swapped_words };

/// "without-positions", "uniform-attention", "shuffled-queries", "swapped-words".
std::span<const std::string_view> intervention_names();
std::optional<Intervention> intervention_of(std::string_view name);

/// The model after an intervention: the same weights without positions, with equal attention to all
/// words, or with the numbers of each W_q in random order, the same at every call. Swapping words
/// leaves it as it is. Throws UserError when there are no queries to shuffle.
Trained intervened(const Trained& model, Intervention intervention);

/// `text` with two words in each other's place, wherever they stand as whole words.
std::string swapped(std::string_view text, std::string_view a, std::string_view b);

}  // namespace qkv
