#pragma once

#include <functional>
#include <span>

#include "datasets/vocabulary.h"
#include "train/tasks/network.h"

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

/// The tokens of a vocabulary that end a text: "<|endoftext|>" of GPT-2, and "<eos>" and "</s>" of
/// other corpora, also with the space before them that byte pairs have.
std::vector<std::int32_t> end_of_text_tokens(const Vocabulary& vocabulary);

/// Draw `index` of the seed's random stream; never a reserved id. Throws ValueError
/// when there is no other.
std::int32_t sample(std::span<const double> logits, const Sampling& sampling, std::uint64_t index);

/// Continues `prompt` by `count` tokens, each passed on as soon as it is sampled, or by fewer, up
/// to one that ends the text and is not passed on. The context is the last `window` tokens at most;
/// keys and values are cached, so that a token costs one step. A hook may replace activations.
/// Throws ValueError when the prompt is empty.
void generate(const Network& network, std::vector<std::int32_t> prompt, Index count, Index window,
              const Sampling& sampling, const std::function<void(std::int32_t)>& pass_on,
              const Hook* hook = nullptr);

}  // namespace qkv
