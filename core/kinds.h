#pragma once

#include <array>
#include <string_view>

namespace qkv {

/// One value of an enumeration: its name in configuration files and what it is. A kind with more to
/// say has a row type of its own with these three members.
template <class E>
struct Kind {
  E value;
  std::string_view name, help;
};

namespace detail {

/// The compiler prints an enumerator by its name, another value of the type as a cast "(E)5".
template <auto value>
consteval bool is_enumerator() {
  return std::string_view(__PRETTY_FUNCTION__).find("value = (") == std::string_view::npos;
}

}  // namespace detail

/// Whether a table has a row for each enumerator, in their order, which counts from 0: asserted
/// beside every table, so that a kind without a row does not compile.
template <class Row, std::size_t count>
consteval bool lists_every_kind(const std::array<Row, count>& rows) {
  for (std::size_t i = 0; i < count; ++i)
    if (rows[i].value != static_cast<decltype(Row::value)>(i)) return false;
  return !detail::is_enumerator<static_cast<decltype(Row::value)>(count)>();
}

/// The row of `kind` in a table that lists every kind.
template <class Rows, class E>
constexpr const auto& row_of(const Rows& rows, E kind) {
  return rows[static_cast<std::size_t>(kind)];
}

}  // namespace qkv
