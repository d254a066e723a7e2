#include "train/config/former_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "train/config/config.h"

namespace qkv {
namespace {

struct FormerOption {
  std::string_view key;
  std::string_view value;  ///< the one that this version has always; empty: no value changes bits
};

constexpr auto former_options = std::to_array<FormerOption>({
    {"model.norm_epsilon", "the number 1e-05"},
    {"model.embedding_norm", "false"},
    {"model.token_types", "the integer 0"},
    {"model.pooling", "the string \"mean\""},
    {"model.output", "the string \"linear\""},
    {"model.freeze_embedding", "false"},
    {"optimizer.require_gradients", ""},
    {"task.background", ""},
    {"task.format", ""},
    {"task.stems", "false"},
    {"train.shard_optimizer", ""},
});

/// `model.freeze_embedding = true` is `train.freeze = ["embedding"]`.
void move_frozen_embedding(TomlTable& config) {
  const auto old = std::ranges::find(config.entries, "model.freeze_embedding", &TomlEntry::key);
  if (old == config.entries.end() || describe(old->value) != "true") return;
  old->value = false;
  const auto parts = std::ranges::find(config.entries, "train.freeze", &TomlEntry::key);
  if (parts == config.entries.end())
    config.entries.push_back({"train.freeze", old->line, TextList{"embedding"}});
  else if (auto* const names = std::get_if<TextList>(&parts->value))
    names->push_back("embedding");
}

}  // namespace

void drop_former_options(TomlTable& config, std::string_view source) {
  move_frozen_embedding(config);
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
