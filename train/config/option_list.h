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

/// The first conflict in the order of the options.
std::optional<Conflict> find_conflict(const Config& config);
/// The first that is refused in new runs alone: checkpoints by earlier versions may have it.
std::optional<Conflict> find_conflict_at_start(const Config& config);

/// Whether the output layer's bias is used, which skip-gram and CBOW do not.
bool predicts_with_bias(const Config& config);

}  // namespace qkv
