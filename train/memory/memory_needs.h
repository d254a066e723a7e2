#pragma once

#include <cstdint>
#include <optional>

#include "train/config/config.h"

namespace qkv {

/// The number of parameters of the network that `options` describe, which is built without storage.
double parameter_count(ModelOptions options, const HeadOptions& head, Index vocabulary,
                       Index outputs);

/// A lower bound of the memory that training takes, in bytes.
struct MemoryNeeds {
  double parameters = 0;   ///< P, a count rather than bytes
  double state = 0;        ///< 4 P (1 + slots of the optimizer + 1 with train.ema)
  double gradients = 0;    ///< 4 P
  double checkpoint = 0;   ///< state: the file while it is built
  double activations = 0;  ///< of a chunk of examples (train/loop/step.h), recomputed in backward
  double order = 0;        ///< 8 batch accumulate: the indices of a step's examples

  double total() const { return state + gradients + checkpoint + activations + order; }
};
/// The bytes that a chunk of so many tokens takes: values that stay in memory for backward, and
/// those of one layer and the output layer while they are computed. A layer of a transformer keeps
/// 6 width + feed_forward values a token (core/ops recomputes norms, GELU and attention weights),
/// or its input where it is `recomputed` (core/autograd.h); other kinds at least width +
/// feed_forward.
double activation_bytes(const Config& config, Index outputs, double tokens, bool recomputed);
/// The sizes of vocabulary and output layer may be lower bounds: no data is needed.
MemoryNeeds memory_needs(const Config& config, Index vocabulary, Index outputs);

/// Throws UserError when training needs more than `limit` bytes of memory or than train.memory; the
/// message lists the size of each part and the options that reduce it.
void require_training_memory(const Config& config, Index vocabulary, Index outputs,
                             std::uint64_t limit);
/// The bytes of train.memory; none without.
std::optional<double> memory_budget(const TrainOptions& train);
/// Throws UserError when the weights alone need more than `limit` bytes.
void require_network_memory(const ModelOptions& options, const HeadOptions& head, Index vocabulary,
                            Index outputs, std::uint64_t limit);

}  // namespace qkv
