#pragma once

#include "train/tasks/sentence_task.h"

namespace qkv {

/// Makes a fresh network a naive Bayes classifier, which training then departs from (after Wang &
/// Manning 2012, "Baselines and Bigrams", whose log-count ratios scale a linear model's features,
/// and Li et al. 2016, "Weighted Neural Bag-of-n-grams Model", who start embeddings from them):
///
///     E[w, h d + c]      r_h(w, c) = log p_h(w | c) - mean over labels c' of log p_h(w | c')
///     W_q                0, so that attention weights depend on positions alone
///     W_v, W_o           identity
///     W[c, h d + c]      words that head h attends to on average, divided among equal heads
///     b                  log p(c)
///
/// for labels c and heads h of width d, where p_h(w | c) is the fraction of w, smoothed by 0.1, in
/// what head h attends to in the training examples with label c, each word counted once an example.
/// Even heads attend to all words. With relative positions, odd heads of a task about a word attend
/// to those less than `max_distance` away from it. The logits are those of naive Bayes, save that
/// sums over words are means times the average number of words. A static model is one head.
///
/// Throws UserError when a head is narrower than the number of labels.
void start_as_naive_bayes(Network& network, const ModelOptions& options,
                          const EncodedSentences& examples, Index labels);

}  // namespace qkv
