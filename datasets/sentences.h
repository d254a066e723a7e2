#pragma once

#include <string>
#include <vector>

#include "core/shape.h"
#include "datasets/tsv.h"

namespace qkv {

/// A sentence, a question about it and the answer.
struct SentenceExample {
  std::string label = {};  ///< the answer, where it is a label
  std::vector<std::string> words = {};
  Index index = -1;        ///< the token that is asked about, counted from 0; -1: none
  Index antecedent = -1;   ///< the answer, where it is another token of the sentence
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

// Each throws UserError naming the row's place, and gives texts as tokens (`tokenized`). Indices in
// rows count the words between white space from 0. Rows of data have all columns (`read_tsv`); what
// a user lets a model read may lack some.

constexpr std::string_view word_sense_columns = "label<TAB>index<TAB>sentence";
constexpr std::string_view classify_columns = "label<TAB>text";
constexpr std::string_view coreference_columns = "antecedent_index<TAB>pronoun_index<TAB>sentence";
constexpr std::string_view translate_columns = "source<TAB>target";

/// `label<TAB>index<TAB>sentence`, `label<TAB>sentence` or a sentence.
SentenceExample parse_labelled(const TsvRow& row);
/// `antecedent_index<TAB>pronoun_index<TAB>sentence`, else the last column is a sentence.
SentenceExample parse_coreference(const TsvRow& row);
/// `source<TAB>target` or a source.
SentencePair parse_translation(const TsvRow& row);

/// At most `max_words` words around the example's word.
SentenceExample cropped(const SentenceExample& example, Index max_words);

}  // namespace qkv
