#pragma once

#include <fmt/core.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/shape.h"

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
  /// Field `i` as the position of one of a sentence's words. Throws UserError.
  Index word_index(std::size_t i, const std::vector<std::string>& words) const;
  /// Field `i` cut at white space. Throws UserError when there are no words.
  std::vector<std::string> sentence(std::size_t i) const;
};

/// Reads a file whose lines have the form `form`, such as "label<TAB>text". Throws UserError naming
/// file and line when a line has more or fewer fields.
std::vector<TsvRow> read_tsv(const std::filesystem::path& path, std::string_view form);

}  // namespace qkv
