#pragma once

#include <fmt/core.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/shape.h"
#include "datasets/text.h"

namespace qkv {

/// A line of a tab-separated file.
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
  /// tokens. Throws UserError.
  Index position(std::size_t i, const TokenizedWords& sentence) const;
  /// Field `i` as tokens. Throws UserError when there are none.
  TokenizedWords sentence(std::size_t i) const;
};

/// The fields of a line.
TsvRow tsv_row(std::string_view line);

/// The lines of a file that are not blank. Throws UserError as `read_filled_lines` does.
std::vector<TsvRow> read_rows(const std::filesystem::path& path);

/// The same for lines of the form `form`, such as "label<TAB>text". Throws UserError naming file
/// and line when a line has more or fewer fields, or the first one is a header.
std::vector<TsvRow> read_tsv(const std::filesystem::path& path, std::string_view form);

}  // namespace qkv
