#pragma once

#include <deque>
#include <vector>

#include "datasets/batch.h"
#include "train/loop/step_plan.h"
#include "train/ranks/gradient_sum.h"

namespace qkv {

/// Computes the gradients of one training step after the other.
///
/// A batch is divided into shards (data parallelism), which ranks and, in each rank, lanes of
/// threads share: a lane computes one shard after the other, and all of them synchronize once a
/// step instead of once an op. Where there are more threads than shards, those of a lane share its
/// ops. A large model, whose gradients and activations take much memory, has one lane. A shard is
/// divided into chunks, which go through forward and backward in sequence, so that only one chunk's
/// activations are in memory. The gradients of shards are added in a fixed tree
/// (train/ranks/shard_tree.h). With S shards a lane holds up to 1 + log2 S gradients. To keep to
/// `train.memory`, one lane computes at a time, and blocks are recomputed in backward.
class Stepper {
 public:
  explicit Stepper(const Training& training, const Communicator& ranks = single_process);

  /// The gradients of step `training.step`, the same on every rank.
  StepGradients gradients();
  /// How that step is divided.
  StepPlan plan() { return planner_.plan(tokens_of(batches())); }

  /// Bytes that this rank's shards took from the system because no pool had them.
  std::size_t system_bytes() const;
  /// Frees what the next step would use again.
  void trim();

 private:
  using Batches = std::vector<std::vector<Index>>;
  using PartialSums = std::vector<PartialSum<StepGradients>>;

  Batches batches();
  Index tokens_of(const Batches& batches) const;
  PartialSums sums_of_lanes(const StepPlan& plan, const Batches& batches);
  StepGradients subtree_gradients(Subtree node, const StepPlan& plan, const Batches& batches) const;
  StepGradients shard_gradients(Index shard, const StepPlan& plan, const Batches& batches) const;

  const Training& training_;
  const Communicator& ranks_;
  StepPlanner planner_;
  BatchSampler sampler_;
  GradientSum sum_;
  std::deque<MemoryPool> pools_;  ///< of the lanes
};

}  // namespace qkv
