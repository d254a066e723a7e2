#include "train/config/toml_document.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>

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

/// Tables in tables that no option is below.
constexpr int deepest = 8;

/// Appends the entries of `table` and of the tables in it. Deeper ones than any option are left
/// out: the table around them is an entry already, and no option's.
void flatten(const toml::table& table, const std::string& prefix, int depth,
             std::vector<TomlEntry>& entries) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + key_part(name.str());
    entries.push_back({key, name.source().begin.line, value_of(node)});
    if (node.is_table() && depth < deepest)
      flatten(*node.as_table(), key + ".", depth + 1, entries);
  }
}

/// Each [[name]] of a document.
std::vector<const toml::node*> tables_of(const toml::table& document, std::string_view name,
                                         std::string_view source) {
  std::vector<const toml::node*> tables;
  const toml::node* list = document.get(name);
  if (!list) return tables;
  require<ConfigError>(list->is_array_of_tables(),
                       "{0}:{1}: a {2} begins with the line [[{2}]], got {3}", source,
                       list->source().begin.line, name, describe(value_of(*list)));
  for (const toml::node& table : *list->as_array()) tables.push_back(&table);
  return tables;
}

/// The kind of an axis that a table of one array is, such as { range = [0, 1] }.
std::optional<TomlAxis::Kind> range_kind(const toml::node& node) {
  const auto* table = node.as_table();
  if (!table || table->size() != 1 || !table->begin()->second.is_array()) return std::nullopt;
  const std::string_view name = table->begin()->first.str();
  if (name == "range") return TomlAxis::Kind::range;
  if (name == "log_range") return TomlAxis::Kind::log_range;
  return std::nullopt;
}

/// Whether the values are two numbers, the lower one first, above 0 in a log range.
bool are_ends(const TomlAxis& axis) {
  if (axis.values.size() != 2) return false;
  const auto low = number_in(axis.values[0]), high = number_in(axis.values[1]);
  return low && high && *low < *high && std::isfinite(*high - *low) &&
         (axis.kind == TomlAxis::Kind::range || *low > 0);
}

/// An array is a list, and any other value a list of one.
TomlAxis axis_of(const std::string& key, const toml::node& node, std::uint32_t line,
                 std::string_view source) {
  const auto range = range_kind(node);
  TomlAxis axis{key, line, range.value_or(TomlAxis::Kind::list), {}};
  const toml::node& values = range ? node.as_table()->begin()->second : node;
  if (const auto* array = values.as_array())
    for (const toml::node& value : *array) axis.values.push_back(value_of(value));
  else
    axis.values.push_back(value_of(values));
  require<ConfigError>(!axis.values.empty(), "{}:{}: {} sweeps over no values", source, line, key);
  require<ConfigError>(!range || are_ends(axis),
                       "{}:{}: the range of {} takes two numbers, the lower one first, as in "
                       "{{ range = [0, 0.5] }} or {{ log_range = [1e-4, 1e-2] }}",
                       source, line, key);
  return axis;
}

/// Appends the axes of a [[sweep]] and of the tables in it.
void add_axes(const toml::table& table, const std::string& prefix, std::string_view source,
              std::vector<TomlAxis>& axes) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + key_part(name.str());
    require<ConfigError>(key != "name",
                         "{}:{}: a sweep has no name; its points are named by their "
                         "values",
                         source, name.source().begin.line);
    if (node.is_table() && !range_kind(node) && std::ranges::count(key, '.') < deepest)
      add_axes(*node.as_table(), key + ".", source, axes);
    else
      axes.push_back(axis_of(key, node, name.source().begin.line, source));
  }
}

std::vector<TomlSweep> sweeps_of(const toml::table& document, std::string_view source) {
  std::vector<TomlSweep> sweeps;
  for (const toml::node* table : tables_of(document, "sweep", source)) {
    TomlSweep sweep{table->source().begin.line, {}};
    add_axes(*table->as_table(), "", source, sweep.axes);
    require<ConfigError>(!sweep.axes.empty(),
                         "{}:{}: a sweep needs an option, as in "
                         "model.width = [16, 32]",
                         source, sweep.line);
    std::ranges::stable_sort(sweep.axes, {}, &TomlAxis::line);
    sweeps.push_back(std::move(sweep));
  }
  return sweeps;
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

std::vector<TomlTable> flat_tables(const toml::table& document, std::string_view name,
                                   std::string_view source) {
  std::vector<TomlTable> tables;
  for (const toml::node* table : tables_of(document, name, source))
    tables.push_back(flat_table(*table->as_table()));
  return tables;
}

}  // namespace

std::optional<double> number_in(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

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
  document.variants = flat_tables(table, "variant", source);
  document.probes = flat_tables(table, "probe", source);
  document.sweeps = sweeps_of(table, source);
  for (const std::string_view name : {"variant", "probe", "sweep"}) table.erase(name);
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
