#include "train/tasks/choice_metrics.h"

#include <algorithm>
#include <cmath>

#include "core/ops.h"
#include "datasets/conll.h"

namespace qkv {
namespace {

double ratio(double a, Index b) {
  return b ? a / static_cast<double>(b) : 0.0;
}

/// The choice with the largest score for each row of scores [..., C].
std::vector<std::int32_t> best_choices(const Tensor& scores) {
  const auto values = scores.data<float>();
  const auto width = static_cast<std::size_t>(scores.dim(-1));
  std::vector<std::int32_t> choices;
  for (std::size_t begin = 0; begin < values.size(); begin += width) {
    const auto row = values.subspan(begin, width);
    choices.push_back(static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin()));
  }
  return choices;
}

/// Whether labels mark spans: one is B- or I-, or all but "O" are parts of spans.
bool mark_spans(const std::vector<std::string>& labels) {
  const auto is_bio = [](const std::string& label) {
    return label.starts_with("B-") || label.starts_with("I-");
  };
  const auto is_part = [](const std::string& label) {
    return label == "O" || is_span_label(label);
  };
  return std::ranges::any_of(labels, is_bio) || std::ranges::all_of(labels, is_part);
}

}  // namespace

void ChoiceMetrics::update(const Tensor& scores, const Indices& answers) {
  const bool keeps = keeps_probabilities_ && !labels_->empty();
  const auto probabilities = keeps ? softmax(scores).values() : std::vector<double>();
  const auto best = best_choices(scores);
  const auto width = static_cast<std::size_t>(scores.dim(-1));
  for (std::size_t i = 0; i < best.size(); ++i) {
    const std::int32_t answer = answers.data()[i];
    if (answer < 0) continue;
    right_ += best[i] == answer;
    add_probabilities(scores.data<float>().subspan(i * width, width), best[i], answer);
    if (!labels_->empty()) ++counts_[{answer, best[i]}];
    if (!keeps) continue;
    const auto row = probabilities.begin() + static_cast<Index>(i) * scores.dim(-1);
    probabilities_.insert(probabilities_.end(), row, row + scores.dim(-1));
    answers_.push_back(answer);
  }
}

void ChoiceMetrics::add_probabilities(std::span<const float> scores, std::int32_t best,
                                      std::int32_t answer) {
  const double most = scores[static_cast<std::size_t>(best)];
  double sum = 0;
  for (const float score : scores) sum += std::exp(score - most);
  log_loss_ += std::log(sum) + most - scores[static_cast<std::size_t>(answer)];
  const double confidence = 1 / sum;
  // Bin i is (i / bins, (i + 1) / bins]; a confidence that is no number falls into the first.
  const double above = std::max(1.0, std::ceil(confidence * bins));
  gaps_[static_cast<std::size_t>(above) - 1] += (best == answer ? 1 : 0) - confidence;
}

void ChoiceMetrics::report(Evaluation& evaluation) const {
  evaluation.score = ratio(static_cast<double>(right_), evaluation.count);
  evaluation.metrics = {{"accuracy", evaluation.score}};
  if (!labels_->empty()) report_labels(evaluation);
  double gap = 0;
  for (const double difference : gaps_) gap += std::abs(difference);
  evaluation.metrics.emplace_back("log_loss", ratio(log_loss_, evaluation.count));
  evaluation.metrics.emplace_back("calibration_error", ratio(gap, evaluation.count));
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

void MaskedTokenMetrics::update(const Tensor& logits, const Indices& answers) {
  const auto best = best_choices(logits);
  for (std::size_t i = 0; i < best.size(); ++i) right_ += best[i] == answers.data()[i];
  targets_ += answers.size();
}

void MaskedTokenMetrics::report(Evaluation& evaluation) const {
  evaluation.count = targets_;
  evaluation.metrics = {{"accuracy", ratio(static_cast<double>(right_), targets_)},
                        {"perplexity", std::exp(evaluation.loss)}};
  evaluation.score = -evaluation.loss;
}

void TaggingMetrics::update(const Tensor& scores, const Indices& tags) {
  tokens_.update(scores, tags);
  const auto best = best_choices(scores);
  const auto time = static_cast<std::size_t>(scores.dim(1));
  for (std::size_t begin = 0; begin < best.size(); begin += time) {
    std::vector<std::string> right, given;
    for (std::size_t i = begin; i < begin + time; ++i) {
      const std::int32_t tag = tags.data()[i];
      if (tag < 0) continue;
      right.push_back((*labels_)[static_cast<std::size_t>(tag)]);
      given.push_back((*labels_)[static_cast<std::size_t>(best[i])]);
    }
    labelled_ += std::ssize(right);
    const auto expected = spans_of(right), found = spans_of(given);
    spans_ += std::ssize(expected);
    predicted_ += std::ssize(found);
    common_ += std::ranges::count_if(found, [&](const Span& span) {
      const auto same = std::ranges::lower_bound(expected, span.begin, {}, &Span::begin);
      return same != expected.end() && *same == span;
    });
  }
}

void TaggingMetrics::report(Evaluation& evaluation) const {
  evaluation.count = labelled_;
  tokens_.report(evaluation);
  if (!mark_spans(*labels_)) return;
  evaluation.score = ratio(2 * static_cast<double>(common_), spans_ + predicted_);
  evaluation.metrics.emplace_back("span_f1", evaluation.score);
}

}  // namespace qkv
