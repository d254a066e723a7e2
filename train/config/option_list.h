#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/config.h"
#include "train/config/option.h"

namespace qkv {

/// Every option of a configuration, bound to the members of `config`. Reading, printing, bounds,
/// defaults and help all come from this one list.
std::vector<Option> options_of(Config& config);

/// Options that are valid one by one but not together.
struct Conflict {
  std::vector<std::string_view> keys;  ///< the one that was set last is reported
  std::string text;                    ///< "model.heads must divide model.width"
};
std::optional<Conflict> find_conflict(const Config& config);
/// What is refused of a new run alone: checkpoints by earlier versions may have it.
std::optional<Conflict> find_conflict_at_start(const Config& config);

/// Whether the output layer's bias is used, which skip-gram and CBOW do not.
bool predicts_with_bias(const Config& config);

}  // namespace qkv
