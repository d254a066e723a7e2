#include "datasets/csv.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "datasets/text.h"
#include "datasets/text_file.h"

namespace qkv {
namespace {

char separator_of(std::string_view line) {
  std::string outside;
  bool in_quotes = false;
  for (const char c : line) {
    in_quotes = in_quotes != (c == '"');
    if (!in_quotes) outside += c;
  }
  for (const char separator : {',', ';', '\t'})
    if (outside.find(separator) != outside.npos) return separator;
  return ',';
}

}  // namespace

std::optional<CsvRecord> CsvParser::add(std::size_t number, const std::string& line) {
  const auto demand = [&](bool ok, const char* wrong) {
    require<UserError>(ok, "{}:{}: {}", file_.string(), number, wrong);
  };
  if (in_quotes_)
    record_.fields.back() += ' ';
  else
    record_ = {number, {""}};
  if (separator_ == '\0') separator_ = separator_of(line);
  bool closed = false;  // the field's quotes
  for (std::string_view rest = line;;) {
    std::string& field = record_.fields.back();
    const auto special = std::ranges::find_if(
        rest, [&](char c) { return c == '"' || (c == separator_ && !in_quotes_); });
    const auto text = rest.substr(0, static_cast<std::size_t>(special - rest.begin()));
    rest.remove_prefix(text.size());
    const bool quote = rest.starts_with('"');
    demand(!closed || (!quote && text.find_first_not_of(' ') == text.npos),
           "text follows the quotes of a field; double the quotes inside it");
    if (!closed) field += text;
    demand(!in_quotes_ || field.size() <= max_token_bytes,
           "a field in quotes must have at most 65536 bytes; "
           "are they closed?");
    if (rest.empty()) break;
    rest.remove_prefix(1);
    if (!quote) {
      record_.fields.emplace_back();
      closed = false;
    } else if (in_quotes_ && rest.starts_with('"')) {
      field += '"';
      rest.remove_prefix(1);
    } else if (in_quotes_) {
      in_quotes_ = false;
      closed = true;
    } else {
      demand(trimmed(field).empty(),
             "a quote inside a field; put the field in quotes and double this one");
      in_quotes_ = true;
      field.clear();
    }
  }
  return in_quotes_ ? std::nullopt : std::optional(std::exchange(record_, {}));
}

void CsvParser::finish() const {
  require<UserError>(!in_quotes_, "{}:{}: the quotes of a field are not closed", file_.string(),
                     record_.line);
}

void for_each_record(const std::filesystem::path& file, ReadCallback& callback,
                     const std::function<void(CsvRecord& record)>& use) {
  CsvParser parser(file);
  for_each_line(file, callback, [&](std::size_t number, const std::string& line) {
    if (auto record = parser.add(number, line)) use(*record);
  });
  parser.finish();
}

}  // namespace qkv
