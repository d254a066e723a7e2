#include "train/config/draft.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <variant>

#include "core/error.h"
#include "datasets/text.h"
#include "train/config/former_options.h"
#include "train/config/spelling.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

bool is_table(std::string_view key, std::span<const Option> options) {
  return std::ranges::any_of(options, [&](const Option& o) { return table_of(o.key) == key; });
}

/// The options in `table`. The empty one, the document itself, has the tables besides.
std::vector<std::string> names_in(std::string_view table, std::span<const Option> options) {
  std::vector<std::string> names;
  for (const Option& option : options) {
    const std::string_view parent = table_of(option.key);
    if (parent == table)
      names.emplace_back(option.key);
    else if (table.empty() && std::ranges::find(names, parent) == names.end())
      names.emplace_back(parent);
  }
  return names;
}

std::string unknown_key_hint(std::string_view key, std::span<const Option> options) {
  if (const std::string_view now = successor_of(key); !now.empty())
    return fmt::format("an option of an earlier version: {}", now);
  std::string_view table = key;
  if (!is_table(key, options)) {
    std::vector<std::string> names = names_in("", options);
    for (const Option& option : options) names.emplace_back(option.key);
    if (auto nearest = nearest_name(key, names))
      return fmt::format("did you mean \"{}\"?", *nearest);
    table = is_table(table_of(key), options) ? table_of(key) : "";
  }
  return fmt::format("known here: {}", fmt::join(names_in(table, options), ", "));
}

/// The value of an override's right side: TOML, a number without the zero before its point, or a
/// bare word.
Value override_value(const std::string& text, bool takes_text, const std::string& place) {
  auto value = parse_value(text.starts_with('.') ? '0' + text : text);
  if (value && (!takes_text || std::holds_alternative<std::string>(*value))) return *value;
  value = parse_value(toml_string(text));
  require<ConfigError>(value.has_value(), "{}: not valid UTF-8", place);
  return *value;
}

}  // namespace

std::string_view table_of(std::string_view key) {
  const auto dot = key.rfind('.');
  return key.substr(0, dot == key.npos ? 0 : dot);
}

void store_path(const Option& option, const fs::path& path) {
  require<ConfigError>(is_utf8(path.string()),
                       "{}: the path {} is not valid UTF-8; rename its folder", option.key,
                       path.string());
  if (auto error = option.assign(path.string()))
    throw ConfigError(fmt::format("{} {}; rename its folder", option.key, *error));
}

void Draft::set(std::string_view key, const Value& value, const std::string& place) {
  const std::vector<Option> options = options_of(config_);
  const auto option = std::ranges::find(options, key, &Option::key);
  if (option == options.end())
    throw ConfigError(
        fmt::format("{}: unknown key {} ({})", place, shown(key), unknown_key_hint(key, options)));
  if (auto error = option->assign(value))
    throw ConfigError(fmt::format("{}: {} {}", place, key, *error));
  places_.emplace_back(key, place);
}

void Draft::apply(std::span<const TomlEntry> entries, std::string_view source) {
  const std::vector<Option> options = options_of(config_);
  for (const TomlEntry& entry : entries) {
    const std::string place = fmt::format("{}:{}", source, entry.line);
    if (is_table(entry.key, options))
      require<ConfigError>(std::holds_alternative<TableValue>(entry.value),
                           "{}: {} must be a table, got {}", place, entry.key,
                           describe(entry.value));
    else
      set(entry.key, entry.value, place);
  }
}

void Draft::apply(std::span<const std::string> overrides) {
  const std::vector<Option> options = options_of(config_);
  for (const std::string& assignment : overrides) {
    const std::string place = "--set " + one_line(assignment);
    const auto equals = assignment.find('=');
    require<ConfigError>(equals != assignment.npos,
                         "{}: must have the form key=value, as in train.steps=500", place);
    const std::string key(trimmed(assignment.substr(0, equals)));
    const auto option = std::ranges::find(options, key, &Option::key);
    const bool known = option != options.end();
    const std::string value(trimmed(assignment.substr(equals + 1)));
    set(key, override_value(value, known && option->takes_text, place), place);
    if (known && option->path && !option->path->empty())
      store_path(*option, fs::absolute(*option->path).lexically_normal());
  }
}

bool Draft::make_way_for_data(std::span<const std::string> overrides) {
  const auto names = [&](std::string_view key) {
    return std::ranges::any_of(overrides, [&](const std::string& assignment) {
      const auto equals = assignment.find('=');
      return equals != assignment.npos && trimmed(assignment.substr(0, equals)) == key &&
             !trimmed(assignment.substr(equals + 1)).empty();
    });
  };
  const auto take_back = [&](std::string& member, std::string_view key) {
    member.clear();
    std::erase_if(places_, [&](const auto& entry) { return entry.first == key; });
  };
  TaskOptions& task = config_.task;
  const bool data = names("task.data"), train = names("task.train");
  if (data) {
    take_back(task.train, "task.train");
    take_back(task.valid, "task.valid");
    take_back(task.test, "task.test");
  }
  if (train && !data) take_back(task.data, "task.data");
  return data || train;
}

void Draft::take(std::span<const TomlTable> probes, std::string_view source) {
  for (const TomlTable& table : probes) config_.probes.push_back(read_probe(table, source));
}

const Config& Draft::checked() const {
  refuse(find_conflict(config_));
  return config_;
}

const Config& Draft::checked_at_start() const {
  refuse(find_conflict_at_start(checked()));
  return config_;
}

/// Names the option that was set last.
void Draft::refuse(const std::optional<Conflict>& conflict) const {
  if (!conflict) return;
  const auto latest = std::find_if(places_.rbegin(), places_.rend(), [&](const auto& entry) {
    return std::ranges::find(conflict->keys, entry.first) != conflict->keys.end();
  });
  const std::string& place = latest == places_.rend() ? source_ : latest->second;
  throw ConfigError(place.empty() ? conflict->text : fmt::format("{}: {}", place, conflict->text));
}

void Draft::check_effects(std::size_t first, std::span<const Config> configs) const {
  Config defaults, config = config_;
  const std::vector<Option> options = options_of(config), unset = options_of(defaults);
  for (std::size_t i = first; i < places_.size(); ++i) {
    const auto& [key, place] = places_[i];
    const auto option = std::ranges::find(options, key, &Option::key);
    const bool is_default = option->print() == std::ranges::find(unset, key, &Option::key)->print();
    require<ConfigError>(
        is_default || std::ranges::any_of(
                          configs, [&](const Config& other) { return option->has_effect(other); }),
        "{}: {} has no effect here: it needs {}; remove it", place, key, option->needs);
  }
}

}  // namespace qkv
