#include "train/config/former_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "train/config/config.h"

namespace qkv {
namespace {

struct FormerOption {
  std::string_view key;
  std::string_view value;    ///< the one that this version has always; empty: any is dropped
  std::string_view in_bert;  ///< that of what is model.kind "bert" now
  std::string_view now;      ///< how to say it today
};

constexpr std::string_view output = "model.output";
constexpr std::string_view bert = "model.kind = \"bert\" has what a BERT needs";
constexpr std::string_view detects = "train.on_divergence = \"detect\" does it";
constexpr std::string_view nothing = "nothing replaces it";

constexpr auto former_options = std::to_array<FormerOption>({
    {"model.norm_epsilon", "the number 1e-05", "the number 1e-12", bert},
    {"model.embedding_norm", "false", "true", bert},
    {"model.token_types", "the integer 0", "the integer 2", bert},
    {"model.pooling", "the string \"mean\"", "the string \"first\"", bert},
    {output, "the string \"linear\"", "", bert},
    {"model.embedding_file", "", "", "model.embedding names the file"},
    {"model.freeze_embedding", "", "", "train.freeze = [\"embedding\"] does it"},
    {"optimizer.require_gradients", "", "", detects},
    {"task.background", "", "", nothing},
    {"task.folds", "", "", "task.fold = \"1/5\" is the first of 5"},
    {"task.format", "", "", "files are all alike; script/coarsewsd converts CoarseWSD-20"},
    {"task.stems", "false", "", nothing},
    {"train.detect_anomaly", "", "", detects},
    {"train.shard_optimizer", "", "", nothing},
});

/// The value of an option; null where the configuration does not have it as a T.
template <class T>
T* find(TomlTable& config, std::string_view key) {
  const auto entry = std::ranges::find(config.entries, key, &TomlEntry::key);
  return entry == config.entries.end() ? nullptr : std::get_if<T>(&entry->value);
}

bool has(const TomlTable& config, std::string_view key, std::string_view value) {
  return std::ranges::any_of(config.entries, [&](const TomlEntry& entry) {
    return entry.key == key && describe(entry.value) == value;
  });
}

void set(TomlTable& config, std::string_view key, Value value) {
  std::erase_if(config.entries, [&](const TomlEntry& entry) { return entry.key == key; });
  config.entries.push_back({std::string(key), config.line, std::move(value)});
}

/// An encoder with the norms, token types, pooling and output of a BERT is a BERT.
void move_bert(TomlTable& config) {
  const bool has_output =
      has(config, output, "the string \"transformed\"") == has(config, "model.tied", "true");
  const bool is_bert = has(config, "model.kind", "the string \"encoder\"") && has_output &&
                       std::ranges::all_of(former_options, [&](const FormerOption& option) {
                         return option.in_bert.empty() || has(config, option.key, option.in_bert);
                       });
  if (!is_bert) return;
  set(config, "model.kind", "bert");
  for (const FormerOption& option : former_options)
    if (!option.in_bert.empty() || option.key == output)
      std::erase_if(config.entries,
                    [&](const TomlEntry& entry) { return entry.key == option.key; });
}

/// Moves what became values of other options.
void move_options(TomlTable& config) {
  move_bert(config);
  if (has(config, "model.freeze_embedding", "true")) {
    TextList parts;
    if (const auto* names = find<TextList>(config, "train.freeze")) parts = *names;
    parts.emplace_back("embedding");
    set(config, "train.freeze", parts);
  }
  if (const auto* folds = find<std::int64_t>(config, "task.folds")) {
    const auto* fold = find<std::int64_t>(config, "task.fold");
    set(config, "task.fold",
        *folds > 0 ? fmt::format("{}/{}", fold ? *fold : 1, *folds) : std::string());
  }
  if (const auto* file = find<std::string>(config, "model.embedding_file"); file && !file->empty())
    set(config, "model.embedding", *file);
  if (has(config, "train.detect_anomaly", "true")) set(config, "train.on_divergence", "detect");
}

}  // namespace

std::string_view successor_of(std::string_view key) {
  const auto option = std::ranges::find(former_options, key, &FormerOption::key);
  return option == former_options.end() ? std::string_view() : option->now;
}

void drop_former_options(TomlTable& config, std::string_view source) {
  move_options(config);
  std::erase_if(config.entries, [&](const TomlEntry& entry) {
    const auto is_former = [&](const FormerOption& option) { return option.key == entry.key; };
    if (std::ranges::none_of(former_options, is_former)) return false;
    const std::string value = describe(entry.value);
    const bool is_usual = std::ranges::any_of(former_options, [&](const FormerOption& option) {
      return is_former(option) && (option.value.empty() || option.value == value);
    });
    require<ConfigError>(
        is_usual,
        "{}:{}: {} is an option of an earlier version and has {}, which this version cannot "
        "reproduce; train the model again, or import a BERT again",
        source, entry.line, entry.key, value);
    return true;
  });
}

}  // namespace qkv
