#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "datasets/read_callback.h"
#include "inspect/documents/json.h"
#include "train/tasks/generate.h"

namespace qkv::documents {

/// The prompt of a language model as tokens; of more than the model reads at once the last ones,
/// which the callback is told. Throws UserError for a prompt without a token.
Sentence read_prompt(const LoadedModel& trained, const std::string& text, ReadCallback& callback);

/// Continues a prompt by at most `count` tokens: {"prompt", "text", "tokens": their number}. Each
/// token's text is passed on as soon as it is sampled; some activations are replaced in each pass.
/// `sampling` names no tokens: they are those of the model's vocabulary.
Json generate(const LoadedModel& trained, const std::string& text, const Sentence& prompt,
              Index count, Sampling sampling, const std::vector<Replacement>& replaced,
              const std::function<void(std::string_view)>& pass_on);

}  // namespace qkv::documents
