#pragma once

#include <deque>
#include <optional>

#include "core/parallel.h"
#include "datasets/batch.h"
#include "train/ranks/communicator.h"
#include "train/ranks/gradient_sum.h"
#include "train/memory/memory_needs.h"
#include "train/run/run.h"

namespace qkv {

/// How many shards a batch of so many examples with so many tokens is divided into: a power of two.
/// Each has at least 1024 tokens and 2.5e8 operations, so that adding its gradients and exchanging
/// them with other ranks costs little beside computing them; but a small model has two shards from
/// two examples on, for two threads, which share memory.
Index shard_count(Index parameters, Index examples, Index tokens);

/// Computes the gradients of one training step after the other.
///
/// A batch is divided into shards (data parallelism), which ranks and, in each rank, lanes of
/// threads share: a lane computes one shard after the other, and all of them synchronize once a
/// step instead of once an op. Where there are more threads than shards, and in a large model,
/// whose gradients and activations take much memory, one lane's threads share its ops. A shard is
/// divided into chunks, which go through forward and backward in sequence, so that only one chunk's
/// activations are in memory. Shards and chunks depend on the model and the examples alone, and
/// the gradients of shards are added in a fixed tree (train/ranks/shard_tree.h), so that results do not
/// depend on the number of threads or ranks. With S shards a lane holds up to 1 + log2 S gradients.
/// To keep to `train.memory`, one lane computes at a time, and blocks are recomputed in backward.
class Stepper {
 public:
  explicit Stepper(const Run& run, const Communicator& ranks = single_process);

  /// Those of step `run.step`; the same on every rank.
  StepGradients gradients();
  /// The number of shards of that step's batches.
  Index shards();
  /// How this rank computes its shards.
  struct Strategy {
    Index lanes;
    bool recomputes;  ///< activations, in backward
  };
  Strategy strategy();

  /// Of the blocks that this rank's shards took from the system because no pool had one.
  std::size_t system_bytes() const;
  /// Frees what the next step would use again.
  void trim();

 private:
  using Batches = std::vector<std::vector<Index>>;
  using PartialSums = std::vector<PartialSum<StepGradients>>;
  /// How each batch of a step is divided.
  struct Plan {
    Chunks chunks;  ///< of the batch
    Chunks shards;  ///< of the chunks
    double operations;
    double chunk_tokens;
  };

  Batches batches();
  Index tokens_of(const Batches& batches) const;
  /// `tokens`: of a batch.
  Plan plan(Index tokens) const;
  Index own_shards(const Plan& plan) const;
  Index lanes(const Plan& plan) const;
  double bytes(const Plan& plan, const Strategy& strategy) const;
  Strategy strategy(const Plan& plan) const;
  template <class Compute>
  void in_lanes(const Plan& plan, Index lanes, const Compute& compute);
  StepGradients sum_of_lanes(const Plan& plan, const Batches& batches);
  StepGradients sum_of_ranks(const Plan& plan, const Batches& batches);
  StepGradients subtree_gradients(Subtree node, const Plan& plan, const Batches& batches,
                                  bool recomputes) const;
  StepGradients shard_gradients(Index shard, const Plan& plan, const Batches& batches,
                                bool recomputes, const GradientHook& hook = {}) const;

  const Run& run_;
  const Communicator& ranks_;
  Index parameters_;
  MemoryNeeds needs_;
  std::optional<double> budget_;  ///< bytes of train.memory
  BatchSampler sampler_;
  GradientSum sum_;
  std::deque<MemoryPool> pools_;  ///< of the lanes
};

}  // namespace qkv
