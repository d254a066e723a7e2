#pragma once

#include <optional>

#include "core/parallel.h"
#include "train/ranks/communicator.h"
#include "train/run/training.h"

namespace qkv {

/// How many shards a batch of so many examples with so many tokens is divided into: a power of two.
/// Each has at least 1024 tokens and 2.5e8 operations, so that adding its gradients and exchanging
/// them with other ranks costs little beside computing them; but a small model has two shards from
/// two examples on, for two threads, which share memory.
Index shard_count(Index parameters, Index examples, Index tokens);

/// How a training step is divided. Shards and chunks depend on the model and the examples alone, so
/// that results do not depend on the number of threads or ranks.
struct StepPlan {
  Index tokens;   ///< of the step
  Chunks chunks;  ///< of each batch: examples that go through forward and backward together
  Chunks shards;  ///< of the chunks: what is computed in parallel
  Index first_shard, own_shards;  ///< of this rank
  Index lanes;                    ///< each of which computes some of these shards
  Index threads_per_lane;         ///< share its ops; the ops of a single lane, all threads
  bool recomputes;                ///< activations, in backward
};

/// Plans the steps of a training.
class StepPlanner {
 public:
  StepPlanner(const Training& training, const Communicator& ranks);

  /// The plan for a step of so many tokens: the fastest that keeps to train.memory, or else the one
  /// that takes least.
  StepPlan plan(Index tokens) const;

 private:
  void use_threads(StepPlan& plan, double operations) const;
  bool fits(const StepPlan& plan) const;

  const TrainOptions& options_;
  const Communicator& ranks_;
  Index parameters_;
  std::optional<StepMemory> memory_;
};

}  // namespace qkv
