#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "inspect/documents/json.h"
#include "train/inference/continuation.h"

namespace qkv::documents {

/// {"prompt", "text", "tokens": their number}
Json continuation(const Prompt& prompt, const Continuation& written);

/// `continuation_of` with some activations replaced.
Json generate(const LoadedModel& trained, const Prompt& prompt, Index count,
              const Sampling& sampling, const std::vector<Replacement>& replaced,
              const std::function<void(std::string_view)>& pass_on);

}  // namespace qkv::documents
