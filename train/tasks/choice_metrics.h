#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "train/tasks/evaluation.h"

namespace qkv {

/// Accuracy and, where the choices are labels, the scores of each and macro F1. How good the
/// probabilities are: `log_loss`, the mean of -ln p of the right choice, and `calibration_error`,
/// the expected calibration error (Guo et al. 2017, "On Calibration of Modern Neural Networks"):
///
///     sum over bins of (examples in the bin / examples) |accuracy - mean confidence|
///
/// where confidence is the probability of the most probable choice, and the 15 bins divide (0, 1]
/// equally. Both are computed in float64, in the order of the examples.
class ChoiceMetrics {
 public:
  explicit ChoiceMetrics(const std::vector<std::string>& labels) : labels_(&labels) {}

  void keep_probabilities() { keeps_probabilities_ = true; }
  /// scores [..., C], answers [...]; an answer of -1 does not count.
  void update(const Tensor& scores, const Indices& answers);
  void report(Evaluation& evaluation) const;

 private:
  void report_labels(Evaluation& evaluation) const;
  /// Adds what the scores of an example, [C], say of the choice with the largest and of the right
  /// one.
  void add_probabilities(std::span<const float> scores, std::int32_t best, std::int32_t answer);

  static constexpr std::size_t bins = 15;  ///< of confidence

  const std::vector<std::string>* labels_;  ///< empty when the choices are words
  /// How often a label is right and another is predicted, by both.
  std::map<std::pair<std::int32_t, std::int32_t>, Index> counts_;
  bool keeps_probabilities_ = false;
  std::vector<double> probabilities_;
  std::vector<std::int32_t> answers_;
  Index right_ = 0;
  double log_loss_ = 0;              ///< the sum
  std::array<double, bins> gaps_{};  ///< of each bin, right choices minus the sum of confidences
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
