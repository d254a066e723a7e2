#include "datasets/tsv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "datasets/columns.h"
#include "datasets/csv.h"
#include "datasets/text.h"
#include "datasets/text_file.h"

namespace qkv {
namespace {

std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields;
  for (;;) {
    const std::string_view field = line.substr(0, line.find('\t'));
    fields.emplace_back(trimmed(field));
    if (field.size() == line.size()) return fields;
    line.remove_prefix(field.size() + 1);
  }
}

bool is_blank(std::string_view line) {
  return trimmed(line).empty();
}

bool is_csv(const std::filesystem::path& path) {
  return lower(path.extension().string()) == ".csv";
}

void for_each_tsv_row(const std::filesystem::path& path, ReadCallback& callback,
                      const UseRow& use) {
  const std::string name = path.string() + ":";
  for_each_line(path, callback, [&](std::size_t number, std::string& line) {
    if (is_blank(line)) return;
    TsvRow row{name + std::to_string(number), fields_of(line)};
    require_short_tokens(line, row.place);
    use(row);
  });
}

void for_each_csv_row(const std::filesystem::path& path, ReadCallback& callback,
                      const UseRow& use) {
  for_each_record(path, callback, [&](const CsvRecord& record) {
    if (std::ranges::all_of(record.fields, is_blank)) return;
    TsvRow row{fmt::format("{}:{}", path.string(), record.line), {}};
    for (const std::string& field : record.fields) row.fields.emplace_back(trimmed(field));
    for (const std::string& field : row.fields) require_short_tokens(field, row.place);
    use(row);
  });
}

void for_each_raw_row(const std::filesystem::path& path, ReadCallback& callback,
                      const UseRow& use) {
  (is_csv(path) ? for_each_csv_row : for_each_tsv_row)(path, callback, use);
}

/// Whether the first row of a file, which could name columns, is no example of the same words:
/// there are other rows, and none of them has one of its fields. Of a pipe, which cannot be read
/// twice, it is a header.
bool is_header(const std::filesystem::path& path, const TsvRow& first) {
  if (std::error_code unknown; !std::filesystem::is_regular_file(path, unknown)) return true;
  ReadCallback silent;
  std::size_t rows = 0, equal = 0;
  for_each_raw_row(path, silent, [&](const TsvRow& row) {
    ++rows;
    for (std::size_t i = 0; i < std::min(row.fields.size(), first.fields.size()); ++i)
      equal += rows > 1 && !row.fields[i].empty() && row.fields[i] == first.fields[i];
  });
  return rows > 1 && equal == 0;
}

void require_no_json(const TsvRow& first) {
  const std::string& text = first.fields[0];
  first.demand(!text.starts_with("{\"") && !text.starts_with("[{") && text != "[" && text != "{",
               "is JSON; write it as CSV, or with a tab between columns");
}

/// Puts the fields of a file's rows in the order of a form.
class RowReader {
 public:
  RowReader(const std::filesystem::path& path, const Columns& columns, ReadCallback& callback)
      : path_(path), columns_(columns), form_(columns_of(columns.form)), callback_(callback) {}

  /// Whether the row is an example, rather than the header.
  bool take(TsvRow& row) {
    if (!found_) {
      begin(row);
      if (found_->has_header) return false;
    }
    arrange(row);
    return true;
  }

 private:
  void begin(const TsvRow& first) {
    require_no_json(first);
    width_ = first.fields.size();
    found_ = column_places(first, columns_);
    const bool may_be_header = found_->has_header || !found_->why_not.empty();
    if (may_be_header && columns_.chosen.empty() && !is_header(path_, first))
      found_ = ColumnPlaces();
    first.demand(found_->why_not.empty(), "{}", found_->why_not);
    if (found_->has_header) tell(first);
  }

  void tell(const TsvRow& header) const {
    const auto& places = found_->places;
    std::vector<std::string> read, unread = header.fields;
    bool in_order = true;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto [column, field] = places[i];
      in_order = in_order && field == i;
      read.push_back(fmt::format("{} from \"{}\"", column, header.fields[field]));
      unread[field].clear();
    }
    std::erase(unread, "");
    if (places.empty() || (in_order && unread.empty()))
      callback_.on_message(fmt::format("{}: skipped the header", header.place));
    else
      callback_.on_message(fmt::format(
          "{}: {} by the header{}", header.place, fmt::join(read, ", "),
          unread.empty() ? "" : fmt::format("; not read: \"{}\"", fmt::join(unread, "\", \""))));
  }

  void arrange(TsvRow& row) const {
    const std::size_t size = row.fields.size();
    if (found_->places.empty()) {
      row.demand(columns_.may_lack || size == form_.size(), "{}", wrong_count(row));
      return;
    }
    const auto last = std::ranges::max(found_->places, {}, &ColumnPlace::field).field;
    if (columns_.may_lack && !found_->has_header && size <= last) return;
    row.demand(last < size && size <= width_, "must have the {} columns of the {}, got {}", width_,
               found_->has_header ? "header" : "first line", size);
    std::vector<std::string> fields;
    for (const auto& [column, field] : found_->places) fields.push_back(row.fields[field]);
    row.fields = std::move(fields);
  }

  std::string wrong_count(const TsvRow& row) const {
    const std::size_t size = row.fields.size();
    const bool csv = is_csv(path_), other = row.fields[0].find_first_of(",;") != std::string::npos;
    return fmt::format("must be {}, got {} field{}{}", fmt::join(form_, csv ? "," : "<TAB>"), size,
                       size == 1 ? "" : "s",
                       size > form_.size() ? "; name the columns in a first line"
                       : !csv && size == 1 && other
                           ? "; name a file with commas or semicolons *.csv"
                           : "");
  }

  const std::filesystem::path& path_;
  const Columns& columns_;
  std::vector<std::string_view> form_;
  ReadCallback& callback_;
  std::optional<ColumnPlaces> found_;  ///< by the first row
  std::size_t width_ = 0;              ///< fields of the first row
};

}  // namespace

void TsvRow::require_labelled_text() const {
  demand(fields.size() <= 3,
         "must be a sentence, label<TAB>sentence or label<TAB>index<TAB>sentence, has {} columns",
         fields.size());
}

Index TsvRow::position(std::size_t i, const CutSentence& sentence) const {
  const Index words = std::ssize(sentence.positions);
  const auto number = number_in(fields[i]);
  demand(number.has_value(), "the index must be an integer from 0, got \"{}\"", fields[i]);
  demand(*number < words, "the index must be less than the sentence's {} words, got {}", words,
         *number);
  const Index position = sentence.positions[static_cast<std::size_t>(*number)];
  demand(position >= 0, "word {} has no character that the tokenizer reads", *number);
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

void for_each_row(const std::filesystem::path& path, const Columns& columns, ReadCallback& callback,
                  const UseRow& use) {
  RowReader reader(path, columns, callback);
  std::size_t rows = 0;
  for_each_raw_row(path, callback, [&](TsvRow& row) {
    ++rows;
    if (reader.take(row)) use(row);
  });
  require<UserError>(rows > 0, "{}: all of its lines are blank", path.string());
}

void for_each_row(const std::filesystem::path& path, ReadCallback& callback, const UseRow& use) {
  for_each_row(path, Columns("label<TAB>index<TAB>sentence", {}, true), callback, use);
}

}  // namespace qkv
