#pragma once

#include "train/tasks/sentence_task.h"

namespace qkv {

/// Makes a fresh network a naive Bayes classifier, which training then departs from (after Wang &
/// Manning 2012, "Baselines and Bigrams", whose log-count ratios scale a linear model's features,
/// and Li et al. 2016, "Weighted Neural Bag-of-n-grams Model", who start embeddings from them):
///
///     E[w, h d + c]      q_h(w) (r_h(w, c) + r_h(stem, c) for each stem of w), where
///                        r_h(x, c) = log p_h(x | c) - mean over labels c' of log p_h(x | c')
///     W_q                0, so that attention weights depend on positions alone
///     W_v, W_o           identity
///     W[c, h d + c]      0.2 times the words that head h attends to on average, divided among
///                        equal heads
///     b                  0.2 log p(c)
///
/// for labels c and heads h of width d. p_h(x | c) is the fraction of x, smoothed by 0.05, in what
/// head h attends to in the training examples with label c, each word or stem counted once an
/// example; a word has two stems, the four and the six letters that it begins with. The weight
/// q_h(w) is 1 in windows of one or two words. In the others it is log(N / n(w))^2, where n(w) +
/// 0.5 of the N tokens of the text `background` are w (as tf-idf weighs a word in both of the texts
/// that it compares; Robertson & Sparck Jones 1976), or without a background the number of w's
/// letters, in either case divided by its mean over what head h attends to: what tells the topic of
/// a sentence are rare words, and rare words are long (Zipf 1935, "The Psycho-Biology of
/// Language"), while counts in few sentences do not tell yet which words are rare. With relative
/// positions, heads of a task about a word take turns: all words; those less than `max_distance`
/// away from the word; the two before it, the two after it; the one before it, the one after it,
/// the one two before and the one two after. Without, all heads attend to all words. The logits are
/// a fifth of those of naive Bayes, since words are not independent and training could change
/// little where it is sure; sums over words are means times the average number of words. A static
/// model is one head.
///
/// Throws UserError when a head is narrower than the number of labels, when the background has no
/// words, and as `for_each_line` does.
void start_as_naive_bayes(Network& network, const ModelOptions& options, const Tokenizer& tokenizer,
                          const EncodedSentences& examples, Index labels,
                          const std::filesystem::path& background);

}  // namespace qkv
