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

/// A line of a file whose values are separated by tabs.
struct TsvRow {
  std::string place;  ///< "train.tsv:3", for errors
  std::vector<std::string> fields;

  /// Throws UserError naming the place when `ok` is false.
  template <class... Args>
  void demand(bool ok, fmt::format_string<const Args&...> text, const Args&... args) const {
    if (!ok) throw UserError(fmt::format("{}: {}", place, fmt::format(text, args...)));
  }
  /// Field `i`, which counts a sentence's words between white space from 0, as a position among its
  /// tokens. Throws UserError.
  Index position(std::size_t i, const TokenizedWords& sentence) const;
  /// Field `i` as tokens. Throws UserError when there are none.
  TokenizedWords sentence(std::size_t i) const;
};

/// Reads a file whose lines have the form `form`, such as "label<TAB>text", or are blank. Throws
/// UserError naming file and line when a line has more or fewer fields, or the first one is a
/// header.
std::vector<TsvRow> read_tsv(const std::filesystem::path& path, std::string_view form);

}  // namespace qkv
