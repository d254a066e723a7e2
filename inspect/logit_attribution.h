#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspect/components.h"
#include "inspect/explain.h"

namespace qkv {

/// Who wrote a logit: the parts of the residual stream, each with what it adds to the logit.
struct LogitAttribution {
  struct Part {
    std::string label;                   ///< "embedding", "layer 0, head 1", "last norm, bias"
    std::optional<Component> component;  ///< none for embeddings and biases
    double logit;                        ///< added to the logit of the answer
    double difference;                   ///< and to its difference from that of the runner-up
  };

  Index answer, runner_up;  ///< the choices with the two highest logits
  std::vector<Part> parts;  ///< in the order of computing; their sum is the logit
};

/// Direct logit attribution (Elhage et al. 2021, "A Mathematical Framework for Transformer
/// Circuits"). The vectors that the output layer reads are a sum over the embedding, the position,
/// each head and each feed-forward block, and biases. A norm divides by the standard deviation of
/// the whole sum, which is kept as it is, so it maps each part linearly; so does the output layer.
/// Parameter-free attention has no residual stream: only its last block counts.
///
/// In an encoder-decoder it explains a written token, in the decoder. None for models without
/// blocks, and where the logits are no linear function of the last vectors, such as those of
/// coreference.
std::optional<LogitAttribution> logit_attribution(const LoadedModel& trained,
                                                  const Explanation& explanation);

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
