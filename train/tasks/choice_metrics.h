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
  /// scores [B, C], answers [B]
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

}  // namespace qkv
