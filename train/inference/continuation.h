#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "datasets/read_callback.h"
#include "train/run/run.h"
#include "train/tasks/generate.h"

namespace qkv {

/// Whether a model is trained to continue a text from left to right.
bool continues_text(const Config& config);

/// The prompt of a language model as tokens; of more than the model reads at once the last ones,
/// which the callback is told. Throws UserError for a prompt without a token, and when the model
/// does not continue texts.
Sentence read_prompt(const LoadedModel& trained, std::string_view text, ReadCallback& callback);

struct Continuation {
  std::string text;
  Index tokens = 0;
};

/// Continues a prompt by at most `count` tokens. Each token's text is passed on as soon as it is
/// sampled; a hook may replace activations. `sampling` names no tokens: they are those of the
/// model's vocabulary.
Continuation continuation_of(const LoadedModel& trained, std::string_view text,
                             const Sentence& prompt, Index count, Sampling sampling,
                             const std::function<void(std::string_view)>& pass_on,
                             const Hook* hook = nullptr);

}  // namespace qkv
