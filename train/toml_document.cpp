#include "train/toml_document.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "train/config.h"

namespace qkv {
namespace {

Value value_of(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  if (node.is_table()) return TableValue{};
  if (node.is_array()) return OtherValue{"an array"};
  return OtherValue{"a date"};
}

/// A part of a key. Quotes keep an empty part or one with a dot from looking like a table's name.
std::string key_part(std::string_view part) {
  return part.empty() || part.find('.') != part.npos ? toml_string(part) : std::string(part);
}

/// Appends the entries of `table` and of the tables in it. Deeper ones than any option are left
/// out: the table around them is an entry already, and no option's.
void flatten(const toml::table& table, const std::string& prefix, int depth,
             std::vector<TomlEntry>& entries) {
  constexpr int deepest = 8;
  for (const auto& [name, node] : table) {
    const std::string key = prefix + key_part(name.str());
    entries.push_back({key, name.source().begin.line, value_of(node)});
    if (node.is_table() && depth < deepest)
      flatten(*node.as_table(), key + ".", depth + 1, entries);
  }
}

TomlTable flat_table(const toml::table& table) {
  TomlTable result{table.source().begin.line, {}};
  flatten(table, "", 0, result.entries);
  std::ranges::stable_sort(result.entries, {}, &TomlEntry::line);
  return result;
}

/// toml++ 3.3 frees tables by recursion, so that dotted keys of some 50000 parts overflow the
/// stack.
void check_size(std::string_view text, std::string_view source) {
  constexpr std::ptrdiff_t most_dots = 10000;
  require<ConfigError>(text.size() <= longest_toml, "{}: a configuration must not exceed 1 MiB",
                       source);
  require<ConfigError>(std::ranges::count(text, '.') <= most_dots,
                       "{}: a configuration must not have more than {} dots", source, most_dots);
}

}  // namespace

TomlDocument parse_toml(std::string_view text, std::string_view source) {
  check_size(text, source);
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: not valid TOML: {}", source, error.source().begin.line,
                                  one_line(error.description())));
  }
  TomlDocument document;
  if (const toml::node* list = table.get("variant")) {
    require<ConfigError>(list->is_array_of_tables(),
                         "{}:{}: a variant begins with the line [[variant]], got {}", source,
                         list->source().begin.line, describe(value_of(*list)));
    for (const toml::node& variant : *list->as_array())
      document.variants.push_back(flat_table(*variant.as_table()));
    table.erase("variant");
  }
  document.root = flat_table(table);
  return document;
}

}  // namespace qkv
