#include "datasets/sentences.h"

#include <algorithm>

#include "datasets/text.h"
#include "datasets/tsv.h"

namespace qkv {

SentenceExamples read_word_sense_tsv(const std::filesystem::path& path) {
  SentenceExamples examples;
  for (const TsvRow& row : read_tsv(path, "label<TAB>index<TAB>sentence")) {
    row.demand(!row.fields[0].empty(), "the label is empty");
    const TokenizedWords sentence = row.sentence(2);
    examples.push_back({row.fields[0], sentence.tokens, row.position(1, sentence), 0, row.place});
  }
  return examples;
}

SentenceExamples read_classify_tsv(const std::filesystem::path& path) {
  SentenceExamples examples;
  for (const TsvRow& row : read_tsv(path, "label<TAB>text")) {
    row.demand(!row.fields[0].empty(), "the label is empty");
    const auto words = tokenized(row.fields[1]);
    row.demand(!words.empty(), "the text is empty");
    examples.push_back({row.fields[0], words, 0, 0, row.place});
  }
  return examples;
}

SentenceExamples read_coreference_tsv(const std::filesystem::path& path) {
  SentenceExamples examples;
  for (const TsvRow& row : read_tsv(path, "antecedent_index<TAB>pronoun_index<TAB>sentence")) {
    const TokenizedWords sentence = row.sentence(2);
    examples.push_back(
        {"", sentence.tokens, row.position(1, sentence), row.position(0, sentence), row.place});
    row.demand(examples.back().index != examples.back().antecedent,
               "a word cannot be its own antecedent: both indices are {}", row.fields[0]);
  }
  return examples;
}

std::vector<SentencePair> read_translate_tsv(const std::filesystem::path& path) {
  std::vector<SentencePair> pairs;
  for (const TsvRow& row : read_tsv(path, "source<TAB>target")) {
    pairs.push_back({tokenized(row.fields[0]), tokenized(row.fields[1]), row.place});
    row.demand(!pairs.back().source.empty(), "the source is empty");
    row.demand(!pairs.back().target.empty(), "the target is empty");
  }
  return pairs;
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
