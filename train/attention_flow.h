#pragma once

#include <string>
#include <vector>

#include "train/explain.h"

namespace qkv {

using Matrix = std::vector<std::vector<double>>;  ///< [query][key]

/// The attention weights of a sentence: [layer][head][query][key].
using LayerWeights = std::vector<std::vector<Matrix>>;

/// Self-attention weights of a model that was recorded; empty when it has none.
LayerWeights self_attention(const Recorder& recorder);

/// How much of each input word reaches each word through all layers (Abnar & Zuidema 2020,
/// "Quantifying Attention Flow in Transformers", 3): the product over layers of W / 2 + I / 2, W
/// the mean over heads. Rows sum to 1.
Matrix rollout(const LayerWeights& layers);

/// Mean over queries of -sum w log2 w, in bits: 0 when each query takes one word, log2 T when it
/// takes all T alike.
double entropy(const Matrix& weights);

/// Where a head looks, as shares of its weights.
struct HeadHabits {
  double entropy = 0;  ///< bits
  double self = 0, previous = 0, next = 0, first = 0, last = 0;
  double distance = 0;  ///< mean number of words between query and key
};

/// Habits over a sentence's queries; `mean_habits` over many sentences.
HeadHabits habits(const Matrix& weights);
HeadHabits mean_habits(const std::vector<HeadHabits>& all);

}  // namespace qkv
