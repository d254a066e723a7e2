#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace qkv {

/// Which of the dotted `names` the unknown one most likely stands for: one with few differing
/// letters ("model.wdith"), an abbreviation in the same table ("optimizer.learning_rate" for
/// "optimizer.lr") or the same word in another table ("lr"). Nothing when none is near.
std::optional<std::string> nearest_name(std::string_view unknown,
                                        std::span<const std::string> names);

}  // namespace qkv
