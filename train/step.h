#pragma once

#include <array>

#include "core/parallel.h"
#include "datasets/batch.h"
#include "train/run.h"

namespace qkv {

/// The mean loss of examples, over all their targets, and its gradients.
struct StepGradients {
  double loss = 0;
  Index tokens = 0;   ///< that the model read, without padding
  Index targets = 0;  ///< of which the loss is the mean
  Gradients gradients;
  double forward_ms = 0, backward_ms = 0;  ///< summed over the chunks
};

/// Computes the gradients of one training step after the other.
///
/// A batch is divided into chunks, which go through forward and backward in sequence, so that only
/// one chunk's activations are in memory. The chunks of a small model form two shards (data
/// parallelism): two threads compute one each and synchronize once a step instead of once an op;
/// more threads share the ops of one shard after the other where that pays. A large model has one
/// shard, as each accumulates gradients of its own. The plan depends on the model and the examples
/// alone, so that results do not depend on the number of threads.
class Stepper {
 public:
  explicit Stepper(const Run& run);

  /// Those of step `run.step`.
  StepGradients gradients();

  /// Tensor allocations of the shards that no memory pool could serve.
  std::size_t system_allocations() const;

 private:
  using Batches = std::vector<std::vector<Index>>;
  /// How each batch of a step is divided.
  struct Plan {
    Chunks chunks;  ///< of the batch
    Chunks shards;  ///< of the chunks
    bool parallel;  ///< shards run in parallel, rather than the ops of one after the other
  };

  Batches batches();
  Index tokens_of(const Batches& batches) const;
  /// `tokens`: of a batch.
  Plan plan(Index tokens) const;
  StepGradients shard_gradients(Index shard, const Plan& plan, const Batches& batches) const;

  static constexpr Index max_shards = 2;

  const Run& run_;
  Index parameters_;
  BatchSampler sampler_;
  std::array<MemoryPool, max_shards> pools_;
};

}  // namespace qkv
