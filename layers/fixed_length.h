#pragma once

#include <memory>

#include "layers/model.h"

namespace qkv {

/// A feed-forward network over a fixed number of positions, as before parameters were shared
/// between them (after Bengio et al. 2003, "A Neural Probabilistic Language Model"): the embeddings
/// of max_length tokens, padded with zeros, are concatenated, go through one hidden layer and come
/// out as max_length contextual vectors. The number of parameters grows with max_length, each
/// position is learned on its own, and a longer sequence is a ValueError. Throws ValueError when
/// feed_forward is 0.
std::unique_ptr<Model> make_fixed_length_model(const ModelOptions& options, Index vocabulary);

}  // namespace qkv
