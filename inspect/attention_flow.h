#pragma once

#include <string>
#include <vector>

#include "inspect/explain.h"

namespace qkv {

using Matrix = std::vector<std::vector<double>>;  ///< [query][key]

/// The attention weights of a sentence: [layer][head][query][key].
using LayerWeights = std::vector<std::vector<Matrix>>;

/// The modules of a recorded model in which words attend to words of their own text.
std::vector<AttentionSteps> self_attention_steps(const Recorder& recorder);

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
  /// Of the scores as softmax gets them, over the keys that a query sees; mean over queries.
  double score_variance = 0;
  double answer = 0;  ///< weight of a text's answer for the word that is asked about
};

/// Habits over a sentence's queries, from the weights alone or with the scores behind them;
/// `mean_habits` over many sentences.
HeadHabits habits(const Matrix& weights);
HeadHabits habits(const AttentionSteps& module, std::size_t head);
HeadHabits mean_habits(const std::vector<HeadHabits>& all);

}  // namespace qkv
