// Data of tagging: words and labels in columns.
#include "datasets/conll.h"

#include "datasets/tokenizer.h"
#include "tests/fuzz/readers/input.h"

void qkv::fuzz::read(std::span<const std::byte> input) {
  ReadCallback silent;
  for_each_conll_sentence(file_of(input), silent, [](const LabelledWords& sentence) {
    const auto words = sentence.words.size();
    demand(words > 0 && sentence.labels.size() == words);
    Index end = 0;
    for (const Span& span : spans_of(sentence.labels)) {
      demand(span.begin >= end && span.begin < span.end);
      end = span.end;
    }
    demand(end <= static_cast<Index>(words));
    for (const auto& kind : tokenizer_kinds)
      demand(cut_sentence(sentence.words, {.kind = kind.value}).positions.size() == words);
  });
}
