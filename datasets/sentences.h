#pragma once

#include <string>
#include <vector>

#include "core/shape.h"
#include "datasets/tsv.h"

namespace qkv {

/// A sentence, a question about it and the answer.
struct SentenceExample {
  std::string label = {};                ///< the answer, where it is a label
  std::vector<std::string> pieces = {};  ///< of the sentence, see `cut_sentence`
  Index index = -1;       ///< the piece that is asked about, counted from 0; -1: none
  Index antecedent = -1;  ///< the answer, where it is another piece of the sentence

  friend bool operator==(const SentenceExample&, const SentenceExample&) = default;
};

/// A sentence in two languages, as pieces.
struct SentencePair {
  std::vector<std::string> source, target;
};

// Each throws UserError naming the row's place. Indices in rows count the words between white space
// from 0. Rows of data have all columns (`for_each_row`); what a user lets a model read may lack
// some.

constexpr std::string_view word_sense_columns = "label<TAB>index<TAB>sentence";
constexpr std::string_view labelled_columns = "label<TAB>sentence";
constexpr std::string_view classify_columns = "label<TAB>text";
constexpr std::string_view coreference_columns = "antecedent_index<TAB>pronoun_index<TAB>sentence";
constexpr std::string_view translate_columns = "source<TAB>target";

/// `label<TAB>index<TAB>sentence`, `label<TAB>sentence` or a sentence.
SentenceExample parse_labelled(const TsvRow& row, const Cutting& cutting = {});
/// `antecedent_index<TAB>pronoun_index<TAB>sentence`, else the last column is a sentence.
SentenceExample parse_coreference(const TsvRow& row, const Cutting& cutting = {});
/// `source<TAB>target` or a source.
SentencePair parse_translation(const TsvRow& row, const Cutting& cutting = {});

/// Where the part of at most `longest` of a sentence's `length` tokens begins that has its token
/// `index` in the middle, or as near to it as the sentence allows; without an index its beginning.
Index crop_begin(Index length, Index index, Index longest);

}  // namespace qkv
