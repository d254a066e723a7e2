#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/read_callback.h"
#include "train/run/run.h"
#include "train/tasks/generate.h"

namespace qkv {

/// Whether a model is trained to continue a text from left to right.
bool continues_text(const Config& config);

/// Throws UserError when a model of the config does not.
void require_continuing(const Config& config);

/// A text that a language model is to continue.
struct Prompt {
  std::string text;
  Sentence tokens;
};

/// The prompt's tokens; of more than the model reads at once the last ones, which the callback is
/// told. Throws UserError for a prompt without a token, and when the model does not continue texts.
Prompt read_prompt(const LoadedModel& trained, std::string_view text, ReadCallback& callback);

struct Continuation {
  std::string text;
  Index tokens = 0;
};

/// Continues a prompt by at most `count` tokens. Each token's text is passed on as soon as it is
/// sampled; a hook may replace activations. `sampling` names no tokens: they are those of the
/// model's vocabulary.
Continuation continuation_of(const LoadedModel& trained, const Prompt& prompt, Index count,
                             const Sampling& sampling,
                             const std::function<void(std::string_view)>& pass_on,
                             const Hook* hook = nullptr);

/// `continuation_of` for each prompt; those of equal length are computed side by side.
std::vector<Continuation> continuations_of(const LoadedModel& trained,
                                           std::span<const Prompt> prompts, Index count,
                                           const Sampling& sampling);

}  // namespace qkv
