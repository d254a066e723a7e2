#pragma once

#include <functional>
#include <span>

#include "datasets/vocabulary.h"
#include "train/tasks/network.h"
#include "train/tasks/sampling.h"

namespace qkv {

/// The tokens of a vocabulary that end a text: "<|endoftext|>" of GPT-2, and "<eos>" and "</s>" of
/// other corpora, also with the space before them that byte pairs have.
std::vector<std::int32_t> end_of_text_tokens(const Vocabulary& vocabulary);

/// Draw `index` of the seed's random stream; never a reserved id. Throws ValueError
/// when there is no other.
std::int32_t sample(std::span<const double> logits, const Sampling& sampling, std::uint64_t index);

/// Continues `prompt` by `count` tokens, each passed on as soon as it is sampled, or by fewer, up
/// to one that ends the text and is not passed on. The context is the last `window` tokens at most;
/// keys and values are cached, so that a token costs one step. Weights are packed as float32,
/// unless the caller uses `PackedWeights`. A hook may replace activations. Throws ValueError when
/// the prompt is empty.
void generate(const Network& network, std::vector<std::int32_t> prompt, Index count, Index window,
              const Sampling& sampling, const std::function<void(std::int32_t)>& pass_on,
              const Hook* hook = nullptr);

/// `generate` for prompts of equal length side by side, each continued as it is alone; the index of
/// the prompt is passed on with each token. Throws ValueError when the lengths differ, too.
void generate_batch(const Network& network, std::vector<std::vector<std::int32_t>> prompts,
                    Index count, Index window, const Sampling& sampling,
                    const std::function<void(std::size_t, std::int32_t)>& pass_on,
                    const Hook* hook = nullptr);

}  // namespace qkv
