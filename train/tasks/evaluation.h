#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "core/tensor.h"
#include "datasets/corpus.h"

namespace qkv {

enum class Split { train, valid, test };
std::string_view to_string(Split split);

/// The most labels that are compared with each other: a matrix of more is no longer read, and its
/// memory grows with the square of their number.
inline constexpr std::size_t most_compared_labels = 200;

/// The loss of a batch.
struct BatchLoss {
  Tensor value;   ///< scalar: the mean over the targets, each by its weight
  Index targets;  ///< their number
  double weight = static_cast<double>(targets);  ///< the sum of their weights
};

/// How well a label is predicted. A quotient by 0 is 0, as in scikit-learn.
struct LabelScores {
  std::string label;
  Index count = 0;       ///< examples with the label
  double precision = 0;  ///< fraction of its predictions that are right
  double recall = 0;     ///< fraction of its examples that are right
  double f1 = 0;         ///< 2 precision recall / (precision + recall)
  /// How often its examples are given each label; empty where these are more than
  /// `most_compared_labels`.
  std::vector<Index> predicted = {};
};

/// How many tokens there are, and how many of them are `<unk>`.
struct TokenCount {
  Index all = 0, unknown = 0;
};

/// How well a model does on a set of examples.
struct Evaluation {
  Index count = 0;
  double loss = 0;         ///< mean over all targets, as in training
  TokenCount tokens = {};  ///< that the model read, where counted
  /// Metrics of the task, such as {"accuracy", 0.98}; the first is the headline metric.
  std::vector<std::pair<std::string, double>> metrics;
  std::vector<LabelScores> labels;  ///< in alphabetical order; `predicted` is the confusion matrix
  double score = 0;  ///< the higher, the better the checkpoint; ties are broken by the loss
  /// Where the choices are labels, and the options ask for it: of each example the probabilities of
  /// all of them, one example after the other, and the right label's number.
  std::vector<double> probabilities;
  std::vector<std::int32_t> answers;

  std::optional<double> find(std::string_view name) const;
  /// Throws ValueError when there is no such metric.
  double metric(std::string_view name) const;
  /// The higher, the better by "loss" or a metric; by "" the `score`. Throws ValueError when there
  /// is no such metric.
  double score_by(std::string_view name) const;
  /// The headline metric as "accuracy 0.9800"; the loss where there are no metrics.
  std::string headline() const;
};

/// The tokens of some lists, and how many of them are unknown.
TokenCount count_tokens(const IdLists& lists, const Vocabulary& vocabulary);
/// Random numbers of an evaluation for a text: a function of these ids alone, so that its loss
/// depends neither on the batches nor on the order of the lines.
Random drawn_for(std::span<const std::int32_t> ids);

}  // namespace qkv
