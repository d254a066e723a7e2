#include "train/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>
#include <ranges>
#include <utility>
#include <variant>

#include "core/error.h"
#include "core/open_file.h"
#include "train/config/draft.h"
#include "train/config/former_options.h"
#include "train/config/sweep_file.h"
#include "train/config/sweep_points.h"
#include "train/config/toml_document.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

/// `config` with the defaults of options that have no effect in it.
Config without_ineffective_options(const Config& config) {
  Config result = config;
  const Config defaults;
  Config source = defaults;
  const std::vector<Option> to = options_of(result), from = options_of(source);
  for (std::size_t i = 0; i < to.size(); ++i)
    if (!to[i].has_effect(config)) to[i].assign(*parse_value(from[i].print()));
  return result;
}

/// At most one byte more than a configuration may have.
std::string read_text(const fs::path& path, std::string_view source) {
  std::error_code ignored;
  require<ConfigError>(!fs::is_directory(path, ignored),
                       "{}: is a folder; a configuration is a TOML file", source);
  require_readable_kind(path);
  std::ifstream file(path, std::ios::binary);
  require<ConfigError>(file.is_open(), "{}: {}", source,
                       fs::exists(path, ignored) ? "cannot be read" : "there is no such file");
  std::string text(longest_toml + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  require<FileError>(!file.bad(), "{}: cannot be read to its end", source);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

/// Where a relative path of a configuration in `folder` leads. When nothing is there, from
/// `folder`.
fs::path located(const fs::path& path, const fs::path& folder) {
  std::error_code ignored;
  for (fs::path above = folder;; above = above.parent_path()) {
    if (fs::exists(above / path, ignored)) return (above / path).lexically_normal();
    if (above == above.root_path()) return (folder / path).lexically_normal();
  }
}

/// Reads a [[variant]] of a file whose other options are in `draft`.
Variant read_variant(const TomlTable& table, Draft draft, std::string_view source) {
  std::vector<TomlEntry> changes = table.entries;
  const auto entry = std::ranges::find(changes, "name", &TomlEntry::key);
  require<ConfigError>(entry != changes.end(),
                       "{}:{}: a variant needs a name, as in name = \"one head\"", source,
                       table.line);
  const std::string place = fmt::format("{}:{}", source, entry->line);
  std::string name;
  if (auto error = name_option("name", name, "").assign(entry->value))
    throw ConfigError(fmt::format("{}: the variant's name {}", place, *error));
  draft.set("name", fmt::format("{} - {}", draft.checked().name, name), place);
  changes.erase(entry);
  const std::size_t inherited = draft.settings();
  draft.apply(changes, source);
  const Config& config = draft.checked_at_start();
  draft.check_effects(inherited, {&config, 1});
  return {name, config};
}

/// Gives each variant the probes that are about it, and the base those of the variants that are
/// like it; a probe without variants is about all. Each then is a config of its own, whose probes
/// name no variant.
void choose_probes(ConfigFile& file) {
  const auto choose = [](Config& config, const std::vector<std::string>& names) {
    std::erase_if(config.probes, [&](const Probe& probe) {
      return !probe.variants.empty() &&
             std::ranges::find_first_of(probe.variants, names) == probe.variants.end();
    });
    for (Probe& probe : config.probes) probe.variants.clear();
  };
  std::vector<std::string> like_base;
  for (auto& [name, config] : file.variants) {
    Config renamed = config;
    renamed.name = file.base.name;
    if (renamed == file.base) like_base.push_back(name);
    choose(config, {name});
  }
  choose(file.base, like_base);
}

/// Throws ConfigError for a probe about a variant that the file does not have.
void check_variants(const Config& base, const std::vector<Variant>& variants,
                    std::string_view source) {
  for (const Probe& probe : base.probes)
    for (const std::string& name : probe.variants)
      require<ConfigError>(std::ranges::find(variants, name, &Variant::name) != variants.end(),
                           "{}: probe {} names an unknown variant {}", source, shown(probe.name),
                           shown(name));
}

TomlDocument parse_without_variants(std::string_view toml, std::string_view source) {
  TomlDocument document = parse_toml(toml, source);
  require<ConfigError>(document.variants.empty(), "{}:{}: a single configuration has no variants",
                       source, document.variants.empty() ? 0 : document.variants.front().line);
  require<ConfigError>(document.sweeps.empty(), "{}:{}: a single configuration has no sweep",
                       source, document.sweeps.empty() ? 0 : document.sweeps.front().line);
  return document;
}

using VariantTables = std::vector<TomlTable>(const TomlDocument& document, std::uint64_t seed);

/// A file whose variants are in `tables`.
ConfigFile config_file(const TomlDocument& document, std::string_view source,
                       const fs::path& folder, std::span<const std::string> overrides,
                       const std::function<VariantTables>& tables) {
  Draft draft({}, std::string(source));
  draft.apply(document.root.entries, source);
  const bool other_data = draft.make_way_for_data(overrides);
  draft.apply(overrides);
  draft.take(document.probes, source);
  ConfigFile result{draft.checked_at_start(), {}, other_data};
  std::vector<Config> all = {result.base};
  for (const TomlTable& table : tables(document, result.base.seed)) {
    Variant variant = read_variant(table, draft, source);
    require<ConfigError>(
        std::ranges::find(result.variants, variant.name, &Variant::name) == result.variants.end(),
        "{}:{}: a variant with the name {} came before; each needs its own", source, table.line,
        shown(variant.name));
    all.push_back(variant.config);
    result.variants.push_back(std::move(variant));
  }
  // An option of the base may have an effect in some variants only.
  draft.check_effects(0, all);
  result.base = without_ineffective_options(result.base);
  for (Variant& variant : result.variants) {
    variant.config = without_ineffective_options(variant.config);
    locate_files(variant.config, folder);
  }
  check_variants(result.base, result.variants, source);
  locate_files(result.base, folder);
  choose_probes(result);
  return result;
}

std::string to_toml(const std::vector<Option>& options) {
  std::string result;
  std::string_view table;
  for (const Option& option : options) {
    if (table_of(option.key) != table) {
      table = table_of(option.key);
      result += fmt::format("\n[{}]\n", table);
    }
    const std::string_view name = option.key.substr(option.key.rfind('.') + 1);
    result += fmt::format("{} = {}  # {}\n", name, option.print(), option.help);
  }
  return result;
}

}  // namespace

ConfigFile read_config(const fs::path& path, std::span<const std::string> overrides) {
  const std::string source = one_line(path.string());
  return parse_config_file(read_text(path, source), source, path.parent_path(), overrides);
}

ConfigFile parse_config_file(std::string_view toml, std::string_view source, const fs::path& folder,
                             std::span<const std::string> overrides) {
  const auto variants = [](const TomlDocument& document, std::uint64_t) {
    return document.variants;
  };
  return config_file(parse_toml(toml, source), source, folder, overrides, variants);
}

SweepFile read_sweep(const fs::path& path, std::span<const std::string> overrides, Index trials) {
  const std::string source = one_line(path.string());
  TomlDocument document = parse_toml(read_text(path, source), source);
  document.probes.clear();
  require<ConfigError>(!document.sweeps.empty(),
                       "{}: has no [[sweep]], whose values are to be tried; a table such as "
                       "[[sweep]] with the line model.width = [16, 32] is one",
                       source);
  const auto points = [&](const TomlDocument& file, std::uint64_t seed) {
    return crossed(file.variants, trials == 0 ? grid_of(file.sweeps, source)
                                              : random_points(file.sweeps, trials, seed));
  };
  SweepFile file{
      config_file(document, source, path.parent_path(), overrides, points), document.sweeps, {}};
  for (const TomlTable& variant : document.variants)
    file.crossed.push_back(
        std::get<std::string>(std::ranges::find(variant.entries, "name", &TomlEntry::key)->value));
  return file;
}

Config parse_config(std::string_view toml, std::string_view source) {
  TomlDocument document = parse_without_variants(toml, source);
  drop_former_options(document.root, source);
  Draft draft({}, std::string(source));
  draft.apply(document.root.entries, source);
  draft.take(document.probes, source);
  return draft.checked();
}

Config parse_new_config(std::string_view toml, std::string_view source) {
  const TomlDocument document = parse_without_variants(toml, source);
  Draft draft({}, std::string(source));
  draft.apply(document.root.entries, source);
  draft.take(document.probes, source);
  const Config& config = draft.checked_at_start();
  draft.check_effects(0, {&config, 1});
  return without_ineffective_options(config);
}

bool has_task(std::string_view toml, std::string_view source) {
  return std::ranges::any_of(parse_toml(toml, source).root.entries,
                             [](const TomlEntry& entry) { return table_of(entry.key) == "task"; });
}

Config stored_config(std::string_view toml, const fs::path& file) {
  require<UserError>(
      has_task(toml, file.string()),
      "{}: was trained by a program on a module of its own, which that program alone can use",
      file.string());
  Config config = parse_config(toml, file.string());
  locate_files(config, file.parent_path());
  return config;
}

void locate_files(Config& config, const fs::path& folder) {
  const fs::path from = fs::absolute("." / folder).lexically_normal();
  for (const Option& option : options_of(config))
    if (option.path && !option.path->empty()) store_path(option, located(*option.path, from));
}

Config portable(Config config, const fs::path& folder) {
  const fs::path from = fs::absolute("." / folder).lexically_normal();
  for (const Option& option : options_of(config)) {
    if (!option.path) continue;
    const fs::path path = *option.path;
    for (fs::path above = from; path.is_absolute() && above != above.root_path();
         above = above.parent_path()) {
      const fs::path shorter = path.lexically_relative(above);
      if (shorter.empty() || *shorter.begin() == "..") continue;
      if (located(shorter, from) == path) *option.path = shorter;
      break;
    }
  }
  return config;
}

void apply_overrides(Config& config, std::span<const std::string> overrides) {
  Draft draft(config, "");
  draft.apply(overrides);
  const Config& changed = draft.checked();
  draft.check_effects(0, {&changed, 1});
  config = changed;
}

std::string to_toml(const Config& config) {
  Config copy = config;
  std::string result = to_toml(options_of(copy));
  for (const Probe& probe : config.probes) result += to_toml(probe);
  return result;
}

std::string to_toml(const TrainerOptions& options) {
  Config config;
  static_cast<TrainerOptions&>(config) = options;
  std::vector<Option> listed = options_of(config);
  std::erase_if(listed, [](const Option& option) {
    const std::string_view table = table_of(option.key);
    return table == "task" || table == "model";
  });
  return to_toml(listed);
}

}  // namespace qkv
