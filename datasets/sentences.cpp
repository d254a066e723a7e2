#include "datasets/sentences.h"

#include <algorithm>

namespace qkv {

SentenceExample parse_labelled(const TsvRow& row) {
  row.require_labelled_text();
  const std::size_t last = row.fields.size() - 1;
  row.demand(last == 0 || !row.fields[0].empty(), "the label is empty");
  row.demand(last == 0 || row.fields[0].size() <= max_token_bytes,
             "a label must have at most {} bytes, got {}", max_token_bytes, row.fields[0].size());
  const TokenizedWords sentence = row.sentence(last);
  return {.label = last > 0 ? row.fields[0] : "",
          .words = sentence.tokens,
          .index = last == 2 ? row.position(1, sentence) : -1,
          .place = row.place};
}

SentenceExample parse_coreference(const TsvRow& row) {
  row.require_labelled_text();
  const TokenizedWords sentence = row.sentence(row.fields.size() - 1);
  SentenceExample example{.words = sentence.tokens, .place = row.place};
  if (row.fields.size() < 3) return example;
  example.index = row.position(1, sentence);
  example.antecedent = row.position(0, sentence);
  row.demand(example.index != example.antecedent,
             "a word cannot be its own antecedent: both indices are {}", row.fields[0]);
  return example;
}

SentencePair parse_translation(const TsvRow& row) {
  SentencePair pair{tokenized(row.fields[0]), {}, row.place};
  row.demand(!pair.source.empty(), "the source is empty");
  if (row.fields.size() == 1) return pair;
  pair.target = tokenized(row.fields[1]);
  row.demand(!pair.target.empty(), "the target is empty");
  return pair;
}

SentenceExample cropped(const SentenceExample& example, Index max_words) {
  const Index count = std::ssize(example.words);
  if (count <= max_words) return example;
  const Index begin = std::clamp(example.index - max_words / 2, Index{0}, count - max_words);
  SentenceExample result = example;
  result.words.assign(example.words.begin() + begin, example.words.begin() + begin + max_words);
  result.index -= begin;
  return result;
}

}  // namespace qkv
