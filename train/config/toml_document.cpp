#include "train/config/toml_document.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "train/config/config.h"

namespace qkv {
namespace {

Value array_of(const toml::array& array) {
  TextList texts;
  for (const toml::node& node : array) {
    const auto* text = node.as_string();
    if (!text) return OtherValue{"an array"};
    texts.push_back(text->get());
  }
  return texts;
}

Value value_of(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  if (node.is_table()) return TableValue{};
  if (const auto* array = node.as_array()) return array_of(*array);
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

/// Takes each [[name]] out of a document.
std::vector<TomlTable> take_tables(toml::table& document, std::string_view name,
                                   std::string_view source) {
  std::vector<TomlTable> tables;
  const toml::node* list = document.get(name);
  if (!list) return tables;
  require<ConfigError>(list->is_array_of_tables(),
                       "{0}:{1}: a {2} begins with the line [[{2}]], got {3}", source,
                       list->source().begin.line, name, describe(value_of(*list)));
  for (const toml::node& table : *list->as_array()) tables.push_back(flat_table(*table.as_table()));
  document.erase(name);
  return tables;
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
  document.variants = take_tables(table, "variant", source);
  document.probes = take_tables(table, "probe", source);
  document.root = flat_table(table);
  return document;
}

std::optional<Value> parse_value(std::string_view text) {
  if (text.find('\n') != text.npos) return std::nullopt;
  try {
    return parse_toml(fmt::format("value = {}", text), "").root.entries.front().value;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

}  // namespace qkv
