#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspect/cpp_model/tokens.h"

namespace qkv_model {

/// An answer of the model.
struct Prediction {
  std::optional<std::size_t> index;  ///< the token that it is about; none: the whole text
  std::string word;                  ///< that token
  std::string label;                 ///< a class, or the written text
  double probability = 0;
  std::vector<double> logits, probabilities;  ///< in the order of `labels`
};

/// A text in tokens.
struct Sentence {
  Ids ids;
  std::vector<std::string> words;      ///< the tokens; unknown ones as the text has them
  std::vector<std::size_t> positions;  ///< the first token of each word that is no mark
  std::size_t ends = 0;                ///< special tokens at the beginning, and at the end
};

/// Appends the n-grams of a sentence's words, which are joined by spaces.
inline void add_ngrams(Sentence& sentence) {
  const std::size_t count = sentence.words.size();
  for (std::size_t n = 2; n <= description().ngrams; ++n)
    for (std::size_t begin = 0; begin + n <= count; ++begin) {
      std::string ngram = sentence.words[begin];
      for (std::size_t i = begin + 1; i < begin + n; ++i) ngram += ' ' + sentence.words[i];
      sentence.ids.push_back(id_of(ngram));
      sentence.words.push_back(std::move(ngram));
    }
}

/// Appends the tokens of a word, before which a sentence may need a space.
template <class Tokenizer>
void add_word(std::string_view word, Sentence& sentence) {
  const bool spaced =
      Tokenizer::leads_with_space || (Tokenizer::keeps_spaces && !sentence.words.empty());
  std::optional<std::size_t> first, named;
  const std::string text = (spaced ? " " : "") + Tokenizer::prepared(word);
  for_each_piece<Tokenizer>(text, [&](std::string_view piece) {
    const std::string_view name = piece.substr(piece[0] == ' ' ? 1 : 0);
    const std::size_t begin = sentence.ids.size();
    if (!first) first = begin;
    if (!named && !name.empty() && !is_one_mark(name)) named = begin;
    Tokenizer::encode(piece, sentence.ids);
    for (std::size_t i = begin; i < sentence.ids.size(); ++i) {
      const bool is_token = Tokenizer::divides_pieces && !is_unknown(sentence.ids[i]);
      sentence.words.emplace_back(is_token ? token_of(sentence.ids[i]) : piece);
    }
  });
  if (first) sentence.positions.push_back(named ? *named : *first);
}

/// Reads a text as a sentence, in which white space counts as one space. Throws
/// std::invalid_argument when the text is not UTF-8, empty or too long.
template <class Tokenizer>
Sentence sentence_of(std::string_view text) {
  require_utf8(text);
  Sentence sentence;
  const std::vector<std::string> words = Tokenizer::words_of(text);
  if (words.empty()) throw std::invalid_argument("the sentence is empty; give at least one word");
  const auto add_end = [&](std::string_view token) {
    if (token.empty()) return;
    sentence.ids.push_back(id_of(token));
    sentence.words.emplace_back(token);
  };
  add_end(Tokenizer::first);
  sentence.ends = sentence.ids.size();
  for (const std::string& word : words) add_word<Tokenizer>(word, sentence);
  add_ngrams(sentence);
  add_end(Tokenizer::last);
  const std::size_t length = sentence.ids.size(), longest = description().max_length;
  if (length <= longest) return sentence;
  if (!description().truncate)
    throw std::invalid_argument("the sentence has " + std::to_string(length) +
                                " tokens, more than the model's longest, " +
                                std::to_string(longest));
  const auto crop = [&](auto& tokens) {
    const auto left = static_cast<std::ptrdiff_t>(sentence.ends);
    tokens.erase(tokens.end() - static_cast<std::ptrdiff_t>(length - longest) - left,
                 tokens.end() - left);
  };
  crop(sentence.ids);
  crop(sentence.words);
  return sentence;
}

/// The tokens that the model is asked about: the first of each word that has a label, or the words
/// whose senses it knows; none: it is asked about the text. Throws std::invalid_argument when a
/// text has no such word.
inline std::vector<std::size_t> targets_of(const Sentence& sentence, std::string_view text) {
  std::vector<std::size_t> targets;
  const Description& model = description();
  if (model.tags) {
    for (const std::size_t position : sentence.positions)
      if (position + sentence.ends < sentence.ids.size()) targets.push_back(position);
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
  answers.reserve(targets.size());
  for (const std::size_t target : targets)
    answers.push_back(prediction_of(logits_of(x.one_row(target)), target, sentence));
  return answers;
}

/// The text that the model writes for another, token by token the most probable one, and the
/// product of their probabilities.
template <class Tokenizer, class Model>
Prediction translation_of(std::string_view text) {
  const Model& model = loaded<Model>();
  const Matrix encoded = model(sentence_of<Tokenizer>(text).ids);
  typename Model::Cache cache;
  Prediction answer;
  answer.probability = 1;
  Ids written;
  int last = id_of("<bos>");
  while (cache.length < description().max_length) {
    const Vector probabilities = softmax(logits_of(model.decoded({last}, encoded, cache)).values);
    const auto best = std::max_element(probabilities.begin(), probabilities.end());
    answer.probability *= *best;
    last = static_cast<int>(best - probabilities.begin());
    if (last == id_of("<eos>")) break;
    written.push_back(last);
  }
  answer.label = text_of<Tokenizer>(written);
  if (answer.label.substr(0, 1) == " ") answer.label.erase(0, 1);
  return answer;
}

}  // namespace qkv_model
