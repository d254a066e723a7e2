#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "inspect/documents/json.h"
#include "train/inference/continuation.h"

namespace qkv::documents {

/// `continuation_of` with some activations replaced: {"prompt", "text", "tokens": their number}.
Json generate(const LoadedModel& trained, const std::string& text, const Sentence& prompt,
              Index count, const Sampling& sampling, const std::vector<Replacement>& replaced,
              const std::function<void(std::string_view)>& pass_on);

}  // namespace qkv::documents
