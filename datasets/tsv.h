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

/// The fields of a line.
TsvRow tsv_row(std::string_view line);

using UseRow = std::function<void(TsvRow& row)>;

/// Calls `use` for the rows of a file: the lines that are not blank, split at tabs, or of a file
/// "*.csv" the records with commas and quotes (RFC 4180), where a line end inside quotes counts as
/// a space. A first row that names columns, such as "label<TAB>text", is skipped with a message.
/// Throws UserError as `for_each_line` does, when all lines are blank, and naming the line where
/// quotes are misplaced.
void for_each_row(const std::filesystem::path& path, ReadCallback& callback, const UseRow& use);
/// The same for rows of the form `form`, such as "label<TAB>text". Throws UserError naming file and
/// line when a row has more or fewer fields.
void for_each_row(const std::filesystem::path& path, std::string_view form, ReadCallback& callback,
                  const UseRow& use);

/// All rows.
std::vector<TsvRow> read_tsv(const std::filesystem::path& path, std::string_view form);

}  // namespace qkv
