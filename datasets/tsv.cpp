#include "datasets/tsv.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "datasets/text_file.h"

namespace qkv {
namespace {

std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  for (const char c : line)
    if (c == '\t')
      fields.emplace_back();
    else
      fields.back() += c;
  return fields;
}

/// Whether a field could be the name of a column.
bool names_a_column(std::string_view field) {
  constexpr std::array names = {"label",  "class", "category", "sense",    "sentiment", "tag",
                                "target", "text",  "sentence", "question", "review",    "source",
                                "index",  "word",  "position", "pronoun",  "antecedent"};
  const std::string name = lower(field);
  return name.find(' ') == name.npos && std::ranges::any_of(names, [&](std::string_view part) {
           return name.find(part) != name.npos;
         });
}

/// Whether the first of several lines names columns, and its first field occurs nowhere else.
bool is_header(const std::vector<TsvRow>& rows) {
  const auto& first = rows[0].fields;
  return first.size() > 1 && rows.size() > 1 && std::ranges::all_of(first, names_a_column) &&
         std::none_of(rows.begin() + 1, rows.end(),
                      [&](const TsvRow& row) { return row.fields[0] == first[0]; });
}

}  // namespace

void TsvRow::require_labelled_text() const {
  demand(fields.size() <= 3,
         "must be a sentence, label<TAB>sentence or label<TAB>index<TAB>sentence, has {} columns",
         fields.size());
}

Index TsvRow::position(std::size_t i, const TokenizedWords& sentence) const {
  const std::string& text = fields[i];
  const Index words = std::ssize(sentence.positions);
  Index number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  demand(error == std::errc() && end == text.data() + text.size() && number >= 0,
         "the index must be an integer from 0, got \"{}\"", text);
  demand(number < words, "the index must be less than the sentence's {} words, got {}", words,
         number);
  return sentence.positions[static_cast<std::size_t>(number)];
}

TokenizedWords TsvRow::sentence(std::size_t i) const {
  auto found = tokenized_words(fields[i]);
  demand(!found.tokens.empty(), "the sentence is empty");
  return found;
}

TsvRow tsv_row(std::string_view line) {
  return {"", fields_of(line)};
}

std::vector<TsvRow> read_rows(const std::filesystem::path& path) {
  std::vector<TsvRow> rows;
  for (const auto& [number, line] : read_filled_lines(path)) {
    rows.push_back({fmt::format("{}:{}", path.string(), number), fields_of(line)});
    require_short_tokens(line, rows.back().place);
  }
  return rows;
}

std::vector<TsvRow> read_tsv(const std::filesystem::path& path, std::string_view form) {
  std::size_t count = 1;
  for (auto at = form.find("<TAB>"); at != form.npos; at = form.find("<TAB>", at + 1)) ++count;
  std::vector<TsvRow> rows = read_rows(path);
  for (const TsvRow& row : rows)
    row.demand(row.fields.size() == count, "must be {}, got {} field{}", form, row.fields.size(),
               row.fields.size() == 1 ? "" : "s");
  rows[0].demand(!is_header(rows), "is a header, not {}; remove the line", form);
  return rows;
}

}  // namespace qkv
