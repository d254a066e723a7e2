#include "datasets/tsv.h"

#include <algorithm>
#include <charconv>

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

}  // namespace

Index TsvRow::word_index(std::size_t i, const std::vector<std::string>& words) const {
  const std::string& text = fields[i];
  Index number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  demand(error == std::errc() && end == text.data() + text.size() && number >= 0,
         "the index must be a whole number, got \"{}\"", text);
  demand(number < std::ssize(words), "the index must be less than the sentence's {} words, got {}",
         words.size(), number);
  return number;
}

std::vector<std::string> TsvRow::sentence(std::size_t i) const {
  auto found = words(fields[i]);
  demand(!found.empty(), "the sentence is empty");
  return found;
}

std::vector<TsvRow> read_tsv(const std::filesystem::path& path, std::string_view form) {
  std::size_t count = 1;
  for (auto at = form.find("<TAB>"); at != form.npos; at = form.find("<TAB>", at + 1)) ++count;
  std::vector<TsvRow> rows;
  for (const std::string& line : read_lines(path)) {
    const TsvRow& row = rows.emplace_back(
        TsvRow{fmt::format("{}:{}", path.string(), rows.size() + 1), fields_of(line)});
    row.demand(row.fields.size() == count, "must be {}, got {} field{}", form, row.fields.size(),
               row.fields.size() == 1 ? "" : "s");
  }
  return rows;
}

}  // namespace qkv
