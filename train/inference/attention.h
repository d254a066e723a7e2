#pragma once

#include "layers/context.h"
#include "train/inference/trained_model.h"
#include "train/tasks/reader.h"

namespace qkv {

/// Self-attention weights of a model that was recorded; empty when it has none.
LayerWeights self_attention(const Recorder& recorder);

/// The attention that a pass over a sentence recorded.
TextAttention attention_in(Network& network, const Sentence& sentence, const Recorder& recorder);

}  // namespace qkv
