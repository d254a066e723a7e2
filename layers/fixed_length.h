#pragma once

#include <memory>

#include "layers/model.h"

namespace qkv {

/// What networks did before they shared parameters between positions: the vectors of exactly
/// max_length tokens side by side, missing ones zeros, go through one hidden layer and come out as
/// max_length contextual vectors (after Bengio et al. 2003, "A Neural Probabilistic Language
/// Model"). The number of parameters grows with max_length, each position must be learned on its
/// own, and a longer sentence is a ValueError. Throws ValueError when there is no hidden layer.
std::unique_ptr<Model> make_fixed_length_model(const ModelOptions& options, Index vocabulary,
                                               Random& random);

}  // namespace qkv
