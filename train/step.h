#pragma once

#include <array>

#include "core/parallel.h"
#include "datasets/batch.h"
#include "train/run.h"

namespace qkv {

/// The mean loss of examples, over all their targets, and its derivatives.
struct StepGradients {
  double loss = 0;
  Index tokens = 0;   ///< that the model read, without padding
  Index targets = 0;  ///< of which the loss is the mean
  Gradients gradients;
  double forward_ms = 0, backward_ms = 0;  ///< sums over the parts
};

/// Computes the gradients of one training step after the other.
///
/// A batch is cut into parts, which are taken through forward and backward one after the other, so
/// that only one part's activations are in memory. For a small model they form two lanes: two
/// threads take one each and meet once a step, where otherwise they share out each op; more threads
/// do that with one lane after the other when it is worth it. A large model has one lane, as each
/// sums gradients of its own. The cut depends on the model and the examples alone, so that results
/// are the same for any number of threads.
class Stepper {
 public:
  explicit Stepper(const Run& run);

  /// Those of step `run.step`.
  StepGradients gradients();

  /// How often tensor memory of a lane had to be taken from the system.
  std::size_t system_allocations() const;

 private:
  using Batches = std::vector<std::vector<Index>>;
  /// How each batch of a step is cut.
  struct Cut {
    Chunks parts;
    Chunks lanes;  ///< of the parts
  };

  Batches batches();
  /// Of forward and backward, about.
  double operations(Index tokens) const;
  Cut cut(Index tokens) const;
  StepGradients lane_gradients(Index lane, const Cut& cut, const Batches& batches) const;

  static constexpr Index most_lanes = 2;

  const Run& run_;
  Index parameters_;
  BatchSampler sampler_;
  std::array<MemoryPool, most_lanes> pools_;
};

}  // namespace qkv
