#pragma once

#include "inspect/attention_flow.h"
#include "inspect/documents/json.h"

namespace qkv::documents {

/// Attention, and what follows from it; empty where the model has none.
struct SentenceAttention : TextAttention {
  Tensor rollout;    ///< of the layers, [T, T]
  Tensor alignment;  ///< the last layer of `cross`, mean over heads
};
/// The attention that a pass over the sentence recorded.
SentenceAttention attention_in(const LoadedModel& trained, const Sentence& sentence,
                               const Recorder& recorder);

/// {"tokens", "layers", "rollout"}, for a written text also "inputs", "outputs", "decoder", "cross"
/// and "alignment".
Json attend(const SentenceAttention& attention);

}  // namespace qkv::documents
