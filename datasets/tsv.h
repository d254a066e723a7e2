#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/shape.h"
#include "datasets/read_callback.h"
#include "datasets/tokenizer.h"

namespace qkv {

/// A line of a tab-separated file, or a record of a CSV file.
struct TsvRow {
  std::string place;  ///< "train.tsv:3", for errors; may be empty
  std::vector<std::string> fields;

  /// Throws UserError naming the place when `ok` is false.
  template <class... Args>
  void demand(bool ok, fmt::format_string<const Args&...> text, const Args&... args) const {
    if (ok) return;
    throw UserError((place.empty() ? "" : place + ": ") + fmt::format(text, args...));
  }
  /// Throws UserError when there are more than the columns of `label<TAB>index<TAB>sentence`.
  void require_labelled_text() const;
  /// Field `i`, which counts a sentence's words between white space from 0, as a position among its
  /// pieces. Throws UserError.
  Index position(std::size_t i, const CutSentence& sentence) const;
  /// Field `i` as pieces. Throws UserError when there are none.
  CutSentence sentence(std::size_t i, const Cutting& cutting) const;
};

/// The fields of a line, without white space at their ends.
TsvRow tsv_row(std::string_view line);

/// The columns that are read from a file.
struct Columns {
  Columns(const char* columns) : form(columns) {}
  Columns(std::string_view columns, std::vector<std::string> which = {}, bool lack = false)
      : form(columns), chosen(std::move(which)), may_lack(lack) {}

  std::string_view form;            ///< their names in order, as "label<TAB>text"
  std::vector<std::string> chosen;  ///< which of the file's each is (task.columns); may be empty
  bool may_lack = false;            ///< whether rows may have others
};

using UseRow = std::function<void(TsvRow& row)>;

/// Calls `use` for the rows of a file, with the fields in the order of the form and without white
/// space at their ends: the lines that are not blank, split at tabs, or of a file "*.csv" its
/// records (`CsvParser`). A first row that names columns, such as "review,sentiment", says which
/// field is which; what it names besides is not read, and a message says so. Throws UserError as
/// `for_each_line` does, when all lines are blank, where quotes are misplaced, where a header
/// cannot be understood or the file is JSON, and when a row has more or fewer fields, naming file
/// and line.
void for_each_row(const std::filesystem::path& path, const Columns& columns, ReadCallback& callback,
                  const UseRow& use);
/// As with `Columns`, for rows of a sentence: `label<TAB>sentence`,
/// `label<TAB>index<TAB>sentence` or others.
void for_each_row(const std::filesystem::path& path, ReadCallback& callback, const UseRow& use);

}  // namespace qkv
