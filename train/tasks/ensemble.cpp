#include "train/tasks/ensemble.h"

#include <algorithm>
#include <cmath>

#include "train/tasks/sentence_task.h"

namespace qkv {
namespace {

template <class Members>
std::vector<double> mean_probabilities(const Members& members) {
  std::vector<double> mean(members.front().probabilities.size());
  for (const auto& member : members)
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] += member.probabilities[i] / static_cast<double>(members.size());
  return mean;
}

std::vector<std::string> labels_of(const Evaluation& evaluation) {
  std::vector<std::string> labels;
  for (const LabelScores& scores : evaluation.labels) labels.push_back(scores.label);
  return labels;
}

std::vector<double> log_of(std::vector<double> values) {
  for (double& value : values) value = std::log(value);
  return values;
}

}  // namespace

Evaluation averaged(std::span<const Evaluation> evaluations) {
  const Evaluation& first = evaluations.front();
  if (evaluations.size() == 1) return first;
  const auto labels = labels_of(first);
  for (const Evaluation& other : evaluations) {
    require<UserError>(!other.answers.empty(),
                       "only models that choose a label for each example can be averaged");
    require<UserError>(labels_of(other) == labels, "the models have different labels");
    require<UserError>(other.answers == first.answers,
                       "the models were measured on different examples, as splits that are drawn "
                       "by other seeds are; name the data with --data");
  }
  const auto probabilities = mean_probabilities(evaluations);
  const auto classes = std::ssize(labels);
  const Tensor logits = Tensor::from(log_of(probabilities), {first.count, classes});
  const Indices answers(first.answers, {first.count});
  ChoiceMetrics metrics(labels);
  metrics.keep_probabilities();
  metrics.update(logits, answers);
  Evaluation evaluation;
  evaluation.count = first.count;
  evaluation.tokens = first.tokens;
  evaluation.loss = cross_entropy(logits, answers).item();
  metrics.report(evaluation);
  return evaluation;
}

Prediction averaged(std::span<const Prediction> predictions) {
  const Prediction& first = predictions.front();
  for (const Prediction& other : predictions) {
    require<UserError>(!other.is_output && !other.choices.empty(),
                       "only models that choose among labels or words can be averaged");
    require<UserError>(other.choices == first.choices && other.index == first.index,
                       "\"{}\": the models choose among different labels", first.text);
  }
  const auto probabilities = mean_probabilities(predictions);
  return prediction_of(
      first.text, first.index,
      {Tensor::from(log_of(probabilities), {std::ssize(probabilities)}), first.choices, ""});
}

std::vector<Prediction> averaged(const std::vector<std::vector<Prediction>>& predictions) {
  const std::vector<Prediction>& first = predictions.front();
  if (predictions.size() == 1) return first;
  for (const auto& other : predictions)
    require<UserError>(other.size() == first.size(), "the models are about different words");
  std::vector<Prediction> together;
  together.reserve(first.size());
  for (std::size_t word = 0; word < first.size(); ++word) {
    std::vector<Prediction> of_word;
    of_word.reserve(predictions.size());
    for (const auto& of_model : predictions) of_word.push_back(of_model[word]);
    together.push_back(averaged(of_word));
  }
  return together;
}

namespace {

TextPredictions averaged_text(std::vector<std::vector<TextPredictions>>& predictions,
                              std::size_t text) try {
  std::vector<std::vector<Prediction>> of_models;
  for (auto& of_texts : predictions) {
    if (!of_texts[text].error.empty()) return of_texts[text];
    of_models.push_back(std::move(of_texts[text].predictions));
  }
  TextPredictions together = std::move(predictions.front()[text]);
  together.predictions = averaged(of_models);
  return together;
} catch (const UserError& error) {
  return {.error = error.what()};
}

}  // namespace

std::vector<TextPredictions> averaged(std::vector<std::vector<TextPredictions>> predictions) {
  std::vector<TextPredictions> together;
  for (std::size_t text = 0; text < predictions.front().size(); ++text)
    together.push_back(averaged_text(predictions, text));
  return together;
}

}  // namespace qkv
