#pragma once

#include <functional>
#include <string>

#include "tests/ops/case.h"

namespace qkv::fuzz {

/// How a case fails, in a word or two; empty when it does not.
using Kind = std::function<std::string(const Case&)>;

/// A smaller case that fails in the same way as the one of these choices: fewer and simpler choices
/// first, then simpler values.
Case shrunk(const std::vector<std::uint32_t>& choices, const Kind& kind);

}  // namespace qkv::fuzz
