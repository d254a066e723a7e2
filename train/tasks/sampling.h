#pragma once

#include <cstdint>
#include <vector>

#include "core/shape.h"
#include "datasets/vocabulary.h"

namespace qkv {

/// How the next token is sampled from the model's distribution.
struct Sampling {
  double temperature = 1;  ///< divides the logits; 0: greedy
  Index top_k = 0;         ///< only the k most probable tokens; 0: all
  double top_p = 1;        ///< nucleus sampling: only the most probable tokens with this cumulative
                           ///< probability (Holtzman et al. 2020, "The Curious Case of Neural Text
                           ///< Degeneration")
  std::uint64_t seed = 1;
  std::int32_t reserved = Vocabulary::unknown + 1;  ///< ids below are not drawn
  std::vector<std::int32_t> ends = {};              ///< tokens that end the text
};

}  // namespace qkv
