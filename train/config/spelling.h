#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace qkv {

/// The dotted name in `names` that the unknown one most likely means: one at a small edit distance
/// ("model.wdith"), an abbreviation in the same table ("optimizer.learning_rate" for
/// "optimizer.lr") or the same word in another table ("lr"). Nothing when none is near.
std::optional<std::string> nearest_name(std::string_view unknown,
                                        std::span<const std::string> names);

}  // namespace qkv
