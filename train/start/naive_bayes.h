#pragma once

#include "train/tasks/task.h"

namespace qkv {

// clang-format off
/// Starts a fresh network as naive Bayes, with the log-count ratios of the training examples (Wang &
/// Manning 2012, "Baselines and Bigrams") as embeddings (Li et al. 2016, "Weighted Neural
/// Bag-of-n-grams Model"):
///
///     E[w, h d + c]   r_h(w, c) + r_h(first four letters of w, c)
///     r_h(x, c)       log p_h(x | c) - mean over labels c' of log p_h(x | c')
///
///     W_q             0, so that attention weights depend on positions alone
///     W_v, W_o        identity
///     W[c, h d + c]   0.2 times the mean number of words that head h attends to; elsewhere 0
///     b               0.2 log p(c)
///
/// for labels c and heads h of width d. p_h(x | c) is the fraction of x, smoothed by 0.05, in the
/// window of head h in the examples with label c, each word counted once an example. The word that
/// is asked about has the ratio 0. Without windows, of model.position "windows" around a word that
/// is asked about, all words are counted, as if there were one head. The logits are linear in E,
/// a fifth of those of naive Bayes; the model is as option model.init demands.
///
/// Throws UserError when a head is narrower than the number of labels.
// clang-format on
void start_as_naive_bayes(Network& network, const ModelOptions& options, const Task& task);

}  // namespace qkv
