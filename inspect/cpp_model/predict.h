#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/cpp_model/sentence.h"

namespace qkv_model {

/// The tokens that the model is asked about: the first of each word that has a label, or the words
/// whose senses it knows; none: it is asked about the text. Throws std::invalid_argument when a
/// text has no such word.
inline std::vector<std::size_t> targets_of(const Sentence& sentence, std::string_view text) {
  std::vector<std::size_t> targets;
  const Description& model = description();
  if (model.tags) {
    for (const std::size_t position : sentence.positions)
      if (position < sentence.ids.size()) targets.push_back(position);
    if (targets.empty())
      throw std::invalid_argument("\"" + std::string(text) +
                                  "\" has no word that the tokenizer reads");
  }
  if (model.targets.empty()) return targets;
  for (std::size_t i = 0; i < sentence.words.size(); ++i)
    if (std::find(model.targets.begin(), model.targets.end(), sentence.words[i]) !=
        model.targets.end())
      targets.push_back(i);
  if (!targets.empty()) return targets;
  std::string known;
  for (const std::string_view target : model.targets)
    known += (known.empty() ? "" : ", ") + std::string(target);
  throw std::invalid_argument("\"" + std::string(text) +
                              "\" has none of the words that the model was trained on: " + known);
}

inline Prediction prediction_of(const Matrix& logits, std::optional<std::size_t> index,
                                const Sentence& sentence) {
  Prediction answer;
  answer.index = index;
  if (index) answer.word = sentence.words[*index];
  answer.logits = logits.values;
  answer.probabilities = softmax(logits.values);
  const auto best = std::max_element(answer.probabilities.begin(), answer.probabilities.end());
  answer.label =
      description().labels[static_cast<std::size_t>(best - answer.probabilities.begin())];
  answer.probability = *best;
  return answer;
}

template <class Tokenizer, class Model>
std::vector<Prediction> predictions_of(std::string_view text) {
  const Sentence sentence = sentence_of<Tokenizer>(text);
  const std::vector<std::size_t> targets = targets_of(sentence, text);
  const Model& model = loaded<Model>();
  const Matrix x = model(sentence.ids);
  if (targets.empty()) return {prediction_of(logits_of(model.sentence(x)), {}, sentence)};
  std::vector<Prediction> answers;
  for (const std::size_t target : targets)
    answers.push_back(prediction_of(logits_of(x.one_row(target)), target, sentence));
  return answers;
}

}  // namespace qkv_model
