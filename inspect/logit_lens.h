#pragma once

#include <string>
#include <vector>

#include "inspect/explain.h"

namespace qkv {

/// The answer that a model would give after some of its blocks.
struct LensState {
  std::string label;  ///< "input", "layer 0"
  Scores scores;      ///< the last ones are the model's own
};

/// The logit lens (nostalgebraist 2020, "interpreting GPT: the logit lens"): the residual stream
/// before the first block and after each goes through what follows the last one, such as the last
/// norm and the output layer; of an encoder-decoder the decoder's. Empty for models without blocks
/// and without answers to choose from.
std::vector<LensState> logit_lens(const LoadedModel& trained, const Explanation& explanation);

}  // namespace qkv
