#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/option.h"

namespace qkv {

/// A key of a TOML document. Tables are entries too: `model.width = 3` gives "model" and
/// "model.width".
struct TomlEntry {
  std::string key;  ///< with the names of its tables: "model.width"
  std::uint32_t line;
  Value value;
};

/// A table's entries in the order of their lines.
struct TomlTable {
  std::uint32_t line;
  std::vector<TomlEntry> entries;
};

/// The values of a list, or the ends of a range, that a [[sweep]] gives to an option.
struct TomlAxis {
  enum class Kind { list, range, log_range };
  std::string key;  ///< "model.width"
  std::uint32_t line;
  Kind kind;
  std::vector<Value> values;
};
struct TomlSweep {
  std::uint32_t line;
  std::vector<TomlAxis> axes;  ///< in the order of their lines
};

/// A configuration in TOML, before anything is known about its options.
struct TomlDocument {
  TomlTable root;                   ///< without them
  std::vector<TomlTable> variants;  ///< each [[variant]]
  std::vector<TomlTable> probes;    ///< each [[probe]]
  std::vector<TomlSweep> sweeps;    ///< each [[sweep]]
};

inline constexpr std::size_t longest_toml = std::size_t{1} << 20;  ///< bytes

/// Throws ConfigError "<source>:<line>: ..." when `text` is not TOML or too long, or a [[sweep]]
/// has what is neither a list nor a range.
TomlDocument parse_toml(std::string_view text, std::string_view source);

/// The number of an integer or a float.
std::optional<double> number_in(const Value& value);

/// The single TOML value `text`, or nothing when it is none.
std::optional<Value> parse_value(std::string_view text);

}  // namespace qkv
