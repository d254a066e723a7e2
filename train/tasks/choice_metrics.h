#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "train/tasks/evaluation.h"

namespace qkv {

/// Accuracy and, where the choices are labels, the scores of each and macro F1.
class ChoiceMetrics {
 public:
  explicit ChoiceMetrics(const std::vector<std::string>& labels) : labels_(&labels) {}

  void keep_probabilities() { keeps_probabilities_ = true; }
  /// scores [..., C], answers [...]; an answer of -1 does not count.
  void update(const Tensor& scores, const Indices& answers);
  void report(Evaluation& evaluation) const;

 private:
  void report_labels(Evaluation& evaluation) const;

  const std::vector<std::string>* labels_;  ///< empty when the choices are words
  /// How often a label is right and another is predicted, by both.
  std::map<std::pair<std::int32_t, std::int32_t>, Index> counts_;
  bool keeps_probabilities_ = false;
  std::vector<double> probabilities_;
  std::vector<std::int32_t> answers_;
  Index right_ = 0;
};

/// Accuracy and perplexity at the masked positions, which are what is counted.
class MaskedTokenMetrics {
 public:
  /// logits [N, V], the right tokens [N]
  void update(const Tensor& logits, const Indices& answers);
  void report(Evaluation& evaluation) const;

 private:
  Index right_ = 0, targets_ = 0;
};

/// Accuracy and macro F1 over labelled tokens and, where labels are parts of spans
/// (`is_span_label`), the F1 of spans: exactly those tokens and that type (Tjong Kim Sang & De
/// Meulder 2003, "Introduction to the CoNLL-2003 Shared Task").
class TaggingMetrics {
 public:
  explicit TaggingMetrics(const std::vector<std::string>& labels)
      : labels_(&labels), tokens_(labels) {}

  void keep_probabilities() { tokens_.keep_probabilities(); }
  /// scores [B, T, C], tags [B, T]; -1 at tokens without a label
  void update(const Tensor& scores, const Indices& tags);
  void report(Evaluation& evaluation) const;

 private:
  const std::vector<std::string>* labels_;
  ChoiceMetrics tokens_;
  Index labelled_ = 0, spans_ = 0, predicted_ = 0, common_ = 0;
};

}  // namespace qkv
