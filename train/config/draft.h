#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/config/config.h"
#include "train/config/option_list.h"
#include "train/config/toml_document.h"

namespace qkv {

/// "model" of "model.width"; empty for options outside tables.
std::string_view table_of(std::string_view key);

/// Stores an absolute path, whose folders the configuration did not name. Throws ConfigError when
/// it could not be read back from a checkpoint.
void store_path(const Option& option, const std::filesystem::path& path);

/// A configuration being built, with the places where its options were set.
class Draft {
 public:
  /// `source` is what errors name when no place is known; it may be empty.
  Draft(Config config, std::string source)
      : config_(std::move(config)), source_(std::move(source)) {}

  void set(std::string_view key, const Value& value, const std::string& place);
  void apply(std::span<const TomlEntry> entries, std::string_view source);
  void apply(std::span<const std::string> overrides);
  /// Takes back what the file says of the data where overrides name other data; whether they do.
  bool make_way_for_data(std::span<const std::string> overrides);
  void take(std::span<const TomlTable> probes, std::string_view source);
  /// The configuration. Throws ConfigError when options conflict.
  const Config& checked() const;
  /// The configuration of a new run. Throws ConfigError also for what is refused in those alone.
  const Config& checked_at_start() const;
  /// Number of options that were set so far.
  std::size_t settings() const { return places_.size(); }
  /// Throws ConfigError when one of the options that were set after the first so many, to another
  /// value than its default, has no effect in any of `configs`.
  void check_effects(std::size_t first, std::span<const Config> configs) const;

 private:
  Config config_;
  std::string source_;
  std::vector<std::pair<std::string, std::string>> places_;  // key and place, in order

  void refuse(const std::optional<Conflict>& conflict) const;
};

}  // namespace qkv
