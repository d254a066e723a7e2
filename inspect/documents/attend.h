#pragma once

#include "inspect/attention_flow.h"
#include "inspect/documents/json.h"

namespace qkv::documents {

/// The attention of a sentence's words to one another, and of the text that an encoder-decoder
/// writes for it. What a model does not have is empty.
struct SentenceAttention {
  LayerWeights layers;
  Tensor rollout;               ///< of the layers, [T, T]
  LayerWeights decoder, cross;  ///< of the written text, to itself and to the sentence
  Tensor alignment;             ///< the last layer of `cross`, mean over heads
};
/// The attention that a pass over the sentence recorded.
SentenceAttention attention_in(const LoadedModel& trained, const Sentence& sentence,
                               const Recorder& recorder);

/// {"tokens", "layers", "rollout"}, for a written text also "inputs", "outputs", "decoder", "cross"
/// and "alignment".
Json attend(const Sentence& sentence, const SentenceAttention& attention);

}  // namespace qkv::documents
