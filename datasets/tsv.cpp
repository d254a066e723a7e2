#include "datasets/tsv.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "datasets/csv.h"
#include "datasets/text.h"
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

bool is_blank(std::string_view line) {
  return std::ranges::all_of(line, is_white);
}

bool is_csv(const std::filesystem::path& path) {
  return lower(path.extension().string()) == ".csv";
}

void for_each_tsv_row(const std::filesystem::path& path, ReadCallback& callback,
                      const UseRow& use) {
  for_each_line(path, callback, [&](std::size_t number, std::string& line) {
    if (is_blank(line)) return;
    TsvRow row{fmt::format("{}:{}", path.string(), number), fields_of(line)};
    require_short_tokens(line, row.place);
    use(row);
  });
}

void for_each_csv_row(const std::filesystem::path& path, ReadCallback& callback,
                      const UseRow& use) {
  CsvParser parser(path);
  for_each_line(path, callback, [&](std::size_t number, std::string& line) {
    auto record = parser.add(number, line);
    if (!record || std::ranges::all_of(record->fields, is_blank)) return;
    TsvRow row{fmt::format("{}:{}", path.string(), record->line), std::move(record->fields)};
    for (const std::string& field : row.fields) require_short_tokens(field, row.place);
    use(row);
  });
  parser.finish();
}

void for_each_raw_row(const std::filesystem::path& path, ReadCallback& callback,
                      const UseRow& use) {
  (is_csv(path) ? for_each_csv_row : for_each_tsv_row)(path, callback, use);
}

/// Whether the first row of a file, which could name columns, is a header: there are other rows,
/// and its first field occurs in none. Of a pipe, which cannot be read twice, it is one.
bool is_header(const std::filesystem::path& path, const TsvRow& first) {
  if (std::error_code unknown; !std::filesystem::is_regular_file(path, unknown)) return true;
  ReadCallback silent;
  std::size_t rows = 0, equal = 0;
  for_each_raw_row(path, silent, [&](const TsvRow& row) {
    ++rows;
    equal += row.fields[0] == first.fields[0];
  });
  return rows > 1 && equal == 1;
}

}  // namespace

void TsvRow::require_labelled_text() const {
  demand(fields.size() <= 3,
         "must be a sentence, label<TAB>sentence or label<TAB>index<TAB>sentence, has {} columns",
         fields.size());
}

Index TsvRow::position(std::size_t i, const CutSentence& sentence) const {
  const std::string& text = fields[i];
  const Index words = std::ssize(sentence.positions);
  Index number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  demand(error == std::errc() && end == text.data() + text.size() && number >= 0,
         "the index must be an integer from 0, got \"{}\"", text);
  demand(number < words, "the index must be less than the sentence's {} words, got {}", words,
         number);
  const Index position = sentence.positions[static_cast<std::size_t>(number)];
  demand(position >= 0, "word {} has no character that the tokenizer reads", number);
  return position;
}

CutSentence TsvRow::sentence(std::size_t i, const Cutting& cutting) const {
  auto found = cut_sentence(fields[i], cutting);
  demand(!found.pieces.empty(), "the sentence is empty");
  return found;
}

TsvRow tsv_row(std::string_view line) {
  return {"", fields_of(line)};
}

void for_each_row(const std::filesystem::path& path, ReadCallback& callback, const UseRow& use) {
  std::size_t rows = 0;
  for_each_raw_row(path, callback, [&](TsvRow& row) {
    const bool names_columns =
        ++rows == 1 && row.fields.size() > 1 && std::ranges::all_of(row.fields, names_a_column);
    if (names_columns && is_header(path, row))
      callback.on_message(fmt::format("{}: skipped the header", row.place));
    else
      use(row);
  });
  require<UserError>(rows > 0, "{}: all of its lines are blank", path.string());
}

void for_each_row(const std::filesystem::path& path, std::string_view form, ReadCallback& callback,
                  const UseRow& use) {
  std::size_t count = 1;
  for (auto at = form.find("<TAB>"); at != form.npos; at = form.find("<TAB>", at + 1)) ++count;
  for_each_row(path, callback, [&](TsvRow& row) {
    row.demand(row.fields.size() == count, "must be {}, got {} field{}", form, row.fields.size(),
               row.fields.size() == 1 ? "" : "s");
    use(row);
  });
}

std::vector<TsvRow> read_tsv(const std::filesystem::path& path, std::string_view form) {
  ReadCallback silent;
  std::vector<TsvRow> rows;
  for_each_row(path, form, silent, [&](TsvRow& row) { rows.push_back(std::move(row)); });
  return rows;
}

}  // namespace qkv
