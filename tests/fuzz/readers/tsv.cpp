// Data of the tasks whose lines have columns.
#include "datasets/sentences.h"

#include <algorithm>

#include "tests/fuzz/readers/input.h"
#include "tests/support/read_files.h"

namespace qkv::fuzz {
namespace {

/// Reads a file of lines of the form `columns`, for each kind of tokenizer; whether it is one.
template <class Parse>
bool reads_as(const std::filesystem::path& file, std::string_view columns, Parse parse) {
  try {
    for (const TsvRow& row : read_tsv(file, columns))
      for (const auto& kind : tokenizer_kinds) parse(row, Cutting{.kind = kind.value});
  } catch (const UserError&) {
    return false;
  }
  return true;
}

void check(const SentenceExample& example) {
  const Index pieces = std::ssize(example.pieces), longest = 3;
  demand(pieces > 0 && example.index < pieces && example.antecedent < pieces);
  const Index begin = crop_begin(pieces, example.index, longest);
  demand(begin >= 0 && (begin == 0 || begin + longest <= pieces));
  demand(example.index < 0 || (example.index >= begin && example.index < begin + longest));
}

}  // namespace

void read(std::span<const std::byte> input) {
  const auto file = file_of(input);
  const auto labelled = [](const TsvRow& row, const Cutting& cutting) {
    check(parse_labelled(row, cutting));
  };
  const auto coreference = [](const TsvRow& row, const Cutting& cutting) {
    check(parse_coreference(row, cutting));
  };
  const auto translation = [](const TsvRow& row, const Cutting& cutting) {
    const SentencePair pair = parse_translation(row, cutting);
    demand(!pair.source.empty() && !pair.target.empty());
  };
  const bool reads[] = {reads_as(file, word_sense_columns, labelled),
                        reads_as(file, classify_columns, labelled),
                        reads_as(file, coreference_columns, coreference),
                        reads_as(file, translate_columns, translation)};
  if (std::ranges::find(reads, true) == std::end(reads)) {
    // A file for a model to read may lack columns.
    ReadCallback silent;
    for_each_row(file, silent, [&](const TsvRow& row) { labelled(row, {}); });
  }
}

}  // namespace qkv::fuzz
