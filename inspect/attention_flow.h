#pragma once

#include <string>
#include <vector>

#include "inspect/explain.h"
#include "train/inference/attention.h"

namespace qkv {

/// The weights of one head [query, key].
Tensor weights_of_head(const Tensor& layer, Index head);

/// How much of each input word reaches each word through all layers (Abnar & Zuidema 2020,
/// "Quantifying Attention Flow in Transformers", 3): the product over layers of W / 2 + I / 2, W
/// the mean over heads. [T, T], float64; rows sum to 1.
Tensor rollout(const LayerWeights& layers);

/// Mean over queries of -sum w log2 w, in bits: 0 when each query attends to one word, log2 T when
/// it attends to all T alike.
double entropy(const Tensor& weights);

/// Statistics of what a head attends to; weights are means over queries.
struct AttentionStatistics {
  double entropy = 0;  ///< bits
  double self = 0, previous = 0, next = 0, first = 0, last = 0;
  double distance = 0;  ///< mean number of words between query and key
  /// Variance of the scaled scores over the keys visible to a query; mean over queries.
  double score_variance = 0;
  double answer = 0;  ///< weight of a text's answer for the word that is asked about
};

/// Statistics over a sentence's queries, from the weights [T, T] alone or with the scores behind
/// them; `mean_statistics` over many sentences.
AttentionStatistics attention_statistics(const Tensor& weights);
AttentionStatistics attention_statistics(const AttentionSteps& module, std::size_t head);
AttentionStatistics mean_statistics(const std::vector<AttentionStatistics>& all);

}  // namespace qkv
