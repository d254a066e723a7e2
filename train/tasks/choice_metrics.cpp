#include "train/tasks/choice_metrics.h"

#include <algorithm>

#include "core/ops.h"

namespace qkv {
namespace {

double ratio(double a, Index b) {
  return b ? a / static_cast<double>(b) : 0.0;
}

}  // namespace

void ChoiceMetrics::update(const Tensor& scores, const Indices& answers) {
  const auto values = scores.data<float>();
  const auto choices = static_cast<std::size_t>(scores.dim(1));
  for (std::size_t i = 0; i < answers.data().size(); ++i) {
    const auto row = values.subspan(i * choices, choices);
    const auto predicted = static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin());
    const auto answer = answers.data()[i];
    right_ += predicted == answer;
    if (!labels_->empty()) ++counts_[{answer, predicted}];
  }
  if (labels_->empty() || !keeps_probabilities_) return;
  const auto probabilities = softmax(scores).values();
  probabilities_.insert(probabilities_.end(), probabilities.begin(), probabilities.end());
  answers_.insert(answers_.end(), answers.data().begin(), answers.data().end());
}

void ChoiceMetrics::report(Evaluation& evaluation) const {
  evaluation.score = ratio(static_cast<double>(right_), evaluation.count);
  evaluation.metrics = {{"accuracy", evaluation.score}};
  if (!labels_->empty()) report_labels(evaluation);
}

/// The scores of each label, and macro F1, the mean of their F1. Labels that neither the data nor
/// the predictions have do not count, as in scikit-learn.
void ChoiceMetrics::report_labels(Evaluation& evaluation) const {
  const std::size_t labels = labels_->size();
  const bool are_compared = labels <= most_compared_labels;
  const LabelScores none{.label = "", .predicted = std::vector<Index>(are_compared ? labels : 0)};
  std::vector<LabelScores> table(labels, none);
  std::vector<Index> given(labels), right(labels);
  for (const auto& [pair, count] : counts_) {
    const auto answer = static_cast<std::size_t>(pair.first),
               predicted = static_cast<std::size_t>(pair.second);
    LabelScores& scores = table[answer];
    scores.count += count;
    given[predicted] += count;
    if (answer == predicted) right[answer] = count;
    if (are_compared) scores.predicted[predicted] = count;
  }
  double sum = 0;
  Index occurring = 0;
  for (std::size_t i = 0; i < labels; ++i) {
    LabelScores& scores = table[i];
    scores.label = (*labels_)[i];
    const auto hits = static_cast<double>(right[i]);
    scores.precision = ratio(hits, given[i]);
    scores.recall = ratio(hits, scores.count);
    scores.f1 = ratio(2 * hits, scores.count + given[i]);
    sum += scores.f1;
    occurring += scores.count + given[i] > 0;
  }
  evaluation.labels = std::move(table);
  evaluation.metrics.emplace_back("macro_f1", ratio(sum, occurring));
  evaluation.probabilities = probabilities_;
  evaluation.answers = answers_;
}

}  // namespace qkv
