#pragma once

#include <array>

#include "datasets/batch.h"
#include "train/run.h"

namespace qkv {

/// The mean loss of examples, over all their targets, and its derivatives.
struct StepGradients {
  double loss = 0;
  Index tokens = 0;   ///< that the model read, without padding
  Index targets = 0;  ///< of which the loss is the mean
  Gradients gradients;
  double forward_ms = 0, backward_ms = 0;  ///< sums over the halves
};

/// Computes the gradients of one training step after the other.
///
/// Unless the model is large, its batch is cut in two halves. Two threads take one half each
/// through forward and backward and meet once a step, where otherwise they share out each op; more
/// threads do that with one half after the other when it is worth it. The cut depends on the config
/// alone, so that results are the same for any number of threads.
class Stepper {
 public:
  explicit Stepper(const Run& run);

  /// Those of step `run.step`.
  StepGradients gradients();

  /// How often tensor memory of a half had to be taken from the system.
  std::size_t system_allocations() const;

 private:
  void add_batch(StepGradients& sum, std::int64_t number);

  static constexpr Index most_parts = 2;

  const Run& run_;
  BatchSampler sampler_;
  Index tokens_;  ///< of the batch before, or the most that one can have
  Index parts_;
  std::array<MemoryPool, most_parts> pools_;
};

}  // namespace qkv
