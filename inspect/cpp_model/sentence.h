#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/cpp_model/tokenizers.h"

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
};

/// Reads a text as a sentence, in which white space counts as one space. Throws
/// std::invalid_argument when the text is not UTF-8, empty or too long.
template <class Tokenizer>
Sentence sentence_of(std::string_view text) {
  require_utf8(text);
  Sentence sentence;
  for (const std::string& whole : words_of(text)) {
    const bool spaced =
        Tokenizer::leads_with_space || (Tokenizer::keeps_spaces && !sentence.words.empty());
    std::optional<std::size_t> first, named;
    for_each_piece<Tokenizer>((spaced ? " " : "") + prepared(whole), [&](std::string_view piece) {
      const std::string_view word = piece.substr(piece[0] == ' ' ? 1 : 0);
      if (!first) first = sentence.ids.size();
      if (!named && !word.empty() && !is_one_mark(word)) named = sentence.ids.size();
      const std::size_t begin = sentence.ids.size();
      Tokenizer::encode(piece, sentence.ids);
      for (std::size_t i = begin; i < sentence.ids.size(); ++i)
        sentence.words.emplace_back(Tokenizer::divides_pieces ? token_of(sentence.ids[i]) : piece);
    });
    if (first) sentence.positions.push_back(named ? *named : *first);
  }
  const std::size_t length = sentence.ids.size(), longest = description().max_length;
  if (length == 0) throw std::invalid_argument("the sentence is empty; give at least one word");
  if (length > longest && !description().truncate)
    throw std::invalid_argument("the sentence has " + std::to_string(length) +
                                " tokens, more than the model's longest, " +
                                std::to_string(longest));
  sentence.ids.resize(std::min(length, longest));
  sentence.words.resize(sentence.ids.size());
  return sentence;
}

}  // namespace qkv_model
