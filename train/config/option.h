#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace qkv {

struct Config;

struct TableValue {};
/// Another value that no option takes: "an array" or "a date".
struct OtherValue {
  std::string_view what;
};

using TextList = std::vector<std::string>;

/// A value as found in a configuration file or on the command line.
using Value =
    std::variant<bool, std::int64_t, double, std::string, TextList, TableValue, OtherValue>;

/// The value with its type, for errors: `the string "many"`.
std::string describe(const Value& value);
/// `text` with its control characters, such as ends of lines, written as TOML does: \u000A.
std::string one_line(std::string_view text);
/// `text` as a TOML string in one line.
std::string toml_string(std::string_view text);
/// `toml_string` for errors, where long text is cut.
std::string shown(std::string_view text);

/// Options that are valid one by one but not together.
struct Conflict {
  std::vector<std::string_view> keys;  ///< the one that was set last is reported
  std::string text;                    ///< "model.heads must divide model.width"
};
/// Finds the conflict of an option with others, if any.
using ConflictCheck = std::optional<Conflict> (*)(const Config&);

/// One option, bound to the member of a particular Config that holds it.
struct Option {
  std::string_view key;  ///< "model.width"
  std::string help;      ///< for people; one line
  std::string type;      ///< what it takes: "integer from 1 to 4096"
  bool takes_text;       ///< text or a choice, which the command line accepts without quotes
  /// Stores a value, or stores nothing and returns what is wrong: "must be > 0, got -1".
  std::function<std::optional<std::string>(const Value&)> assign;
  /// The stored value in TOML.
  std::function<std::string()> print;
  std::string* path = nullptr;  ///< the member, of an option that names a file or folder
  /// When it has an effect: "model.kind \"recurrent\""; empty: always.
  std::string needs = {};
  std::function<bool(const Config&)> holds = {};
  ConflictCheck conflict = nullptr;           ///< null: no others contradict it
  ConflictCheck conflict_at_start = nullptr;  ///< refused in new runs alone

  bool has_effect(const Config& config) const { return !holds || holds(config); }
};

/// The interval of values that an option takes, closed unless open.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_is_open = false;
  bool high_is_open = false;

  bool contain(double value) const;
  std::string text() const;  ///< "> 0", "from 1 to 4096", "in [0, 1)"
};

constexpr Bounds above(double low) {
  return {.low = low, .low_is_open = true};
}
constexpr Bounds at_least(double low) {
  return {.low = low};
}
constexpr Bounds between(double low, double high) {
  return {.low = low, .high = high};
}
/// Fractions and probabilities below 1: [0, 1).
constexpr Bounds below_one() {
  return {.low = 0, .high = 1, .high_is_open = true};
}

/// Makes an option of a member, whose type decides which values it takes.
Option option(std::string_view key, std::string& member, std::string_view help);
Option option(std::string_view key, TextList& member, std::string_view help);
Option option(std::string_view key, bool& member, std::string_view help);
/// A bool that may be left open as "auto".
Option option(std::string_view key, std::optional<bool>& member, std::string_view help);
Option option(std::string_view key, double& member, Bounds bounds, std::string_view help);
Option option(std::string_view key, std::int64_t& member, Bounds bounds, std::string_view help);
Option option(std::string_view key, std::uint64_t& member, Bounds bounds, std::string_view help);
/// The path of a file or folder.
Option path_option(std::string_view key, std::string& member, std::string_view help);
/// A size of memory, see `parse_memory_size` (core/memory_limit.h), or nothing.
Option memory_option(std::string_view key, std::string& member, std::string_view help);
/// Text that may name a folder, see `name_error`.
Option name_option(std::string_view key, std::string& member, std::string_view help);

/// The error of `name` as the name of a run and its folder, if anything: it must be one to
/// 200 bytes without path separators or control characters, and begin and end visibly.
std::optional<std::string> name_error(std::string_view name);

/// An option that takes one of `names`; `store` and `current` work on positions in them.
Option choice_option(std::string_view key, std::vector<std::string_view> names,
                     std::function<void(std::size_t)> store, std::function<std::size_t()> current,
                     std::string_view help);

/// "`help`; NAME: what it is, ..." of a table of kinds.
template <class Rows>
std::string help_of(std::string_view help, const Rows& rows) {
  std::string text(help);
  std::string_view separator = "; ";
  for (const auto& row : rows) {
    text += fmt::format("{}{}: {}", separator, row.name, row.help);
    separator = ", ";
  }
  return text;
}

/// An option that takes one of the kinds of a table, whose rows have a value, a name and a help and
/// stand in the order of the values.
template <class E, class Rows>
Option kind_option(std::string_view key, E& member, const Rows& rows, std::string_view help) {
  std::vector<std::string_view> names;
  names.reserve(std::size(rows));
  for (const auto& row : rows) names.push_back(row.name);
  return choice_option(
      key, std::move(names), [&member](std::size_t i) { member = static_cast<E>(i); },
      [&member] { return static_cast<std::size_t>(member); }, help_of(help, rows));
}

/// A kind that may be left open as "auto".
template <class E, class Rows>
Option kind_option(std::string_view key, std::optional<E>& member, const Rows& rows,
                   std::string_view help) {
  std::vector<std::string_view> names = {"auto"};
  for (const auto& row : rows) names.push_back(row.name);
  return choice_option(
      key, std::move(names),
      [&member](std::size_t i) {
        member = i ? std::optional(static_cast<E>(i - 1)) : std::nullopt;
      },
      [&member] { return member ? static_cast<std::size_t>(*member) + 1 : 0; },
      help_of(help, rows));
}

}  // namespace qkv
