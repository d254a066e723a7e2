// Data of the tasks whose lines have columns.
#include "datasets/sentences.h"
#include "tests/fuzz/readers/input.h"

namespace {

/// Reads a file of lines of the form `columns` and parses each.
template <class Parse>
void read_as(const std::filesystem::path& file, std::string_view columns, Parse parse) {
  try {
    for (const qkv::TsvRow& row : qkv::read_tsv(file, columns)) parse(row);
  } catch (const qkv::UserError&) {
    // It may be of another form.
  }
}

void check(const qkv::SentenceExample& example) {
  const auto words = std::ssize(example.words);
  qkv::fuzz::demand(words > 0 && example.index < words && example.antecedent < words);
  const auto cropped = qkv::cropped(example, 3);
  qkv::fuzz::demand(example.index < 0 ||
                    cropped.words[static_cast<std::size_t>(cropped.index)] ==
                        example.words[static_cast<std::size_t>(example.index)]);
}

}  // namespace

void qkv::fuzz::read(std::span<const std::byte> input) {
  const auto file = file_of(input);
  const auto labelled = [](const TsvRow& row) { check(parse_labelled(row)); };
  read_as(file, word_sense_columns, labelled);
  read_as(file, classify_columns, labelled);
  read_as(file, coreference_columns, [](const TsvRow& row) { check(parse_coreference(row)); });
  read_as(file, translate_columns, parse_translation);
  for (const TsvRow& row : read_rows(file)) labelled(row);
}
