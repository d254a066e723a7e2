#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/shape.h"

namespace qkv {

/// A sentence, a question about it and the answer.
struct SentenceExample {
  std::string label;  ///< the answer, where it is a label
  std::vector<std::string> words;
  Index index = 0;         ///< the token that is asked about, counted from 0
  Index antecedent = 0;    ///< the answer, where it is another token of the sentence
  std::string place = {};  ///< where it was read: "train.tsv:3"

  friend bool operator==(const SentenceExample& a, const SentenceExample& b) {
    return a.label == b.label && a.words == b.words && a.index == b.index &&
           a.antecedent == b.antecedent;
  }
};

using SentenceExamples = std::vector<SentenceExample>;

/// A sentence in two languages.
struct SentencePair {
  std::vector<std::string> source, target;
  std::string place;
};

// Each throws UserError naming file and line, and gives texts as tokens (`tokenized`). Indices in
// files count the words between white space from 0.

/// Lines `label<TAB>index<TAB>sentence`.
SentenceExamples read_word_sense_tsv(const std::filesystem::path& path);
/// Lines `label<TAB>text`.
SentenceExamples read_classify_tsv(const std::filesystem::path& path);
/// Lines `antecedent_index<TAB>pronoun_index<TAB>sentence`.
SentenceExamples read_coreference_tsv(const std::filesystem::path& path);

/// Lines `source<TAB>target`.
std::vector<SentencePair> read_translate_tsv(const std::filesystem::path& path);

/// At most `max_words` words around the example's word.
SentenceExample cropped(const SentenceExample& example, Index max_words);

}  // namespace qkv
