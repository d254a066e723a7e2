#include "datasets/sentences.h"

#include <algorithm>

#include "datasets/text.h"
#include "datasets/unicode.h"

namespace qkv {

SentenceExample parse_labelled(const TsvRow& row, const Cutting& cutting) {
  row.require_labelled_text();
  const std::size_t last = row.fields.size() - 1;
  row.demand(last == 0 || !row.fields[0].empty(), "the label is empty");
  row.demand(last == 0 || row.fields[0].size() <= max_token_bytes,
             "a label must have at most {} bytes, got {}", max_token_bytes, row.fields[0].size());
  const CutSentence sentence = row.sentence(last, cutting);
  return {.label = last > 0 ? composed(row.fields[0]) : "",
          .pieces = sentence.pieces,
          .index = last == 2 ? row.position(1, sentence) : -1};
}

SentenceExample parse_coreference(const TsvRow& row, const Cutting& cutting) {
  row.require_labelled_text();
  const CutSentence sentence = row.sentence(row.fields.size() - 1, cutting);
  SentenceExample example{.pieces = sentence.pieces};
  if (row.fields.size() < 3) return example;
  example.index = row.position(1, sentence);
  example.antecedent = row.position(0, sentence);
  row.demand(example.index != example.antecedent,
             "a word cannot be its own antecedent: both indices are {}", row.fields[0]);
  return example;
}

SentencePair parse_translation(const TsvRow& row, const Cutting& cutting) {
  SentencePair pair{cut_sentence(row.fields[0], cutting).pieces, {}};
  row.demand(!pair.source.empty(), "the source is empty");
  if (row.fields.size() == 1) return pair;
  pair.target = cut_sentence(row.fields[1], cutting).pieces;
  row.demand(!pair.target.empty(), "the target is empty");
  return pair;
}

Index crop_begin(Index length, Index index, Index longest) {
  if (length <= longest || index < 0) return 0;
  return std::clamp(index - longest / 2, Index{0}, length - longest);
}

}  // namespace qkv
