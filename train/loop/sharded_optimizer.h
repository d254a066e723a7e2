#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/autograd.h"
#include "train/ranks/communicator.h"
#include "train/run/run.h"

namespace qkv {

/// Updates a run's parameters on all ranks. With `train.shard_optimizer` each rank keeps the
/// optimizer state of some parameters alone, updates these, and sends them to the others (ZeRO
/// stage 1; Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter
/// Models"). The bits are those of one process.
class ShardedOptimizer {
 public:
  /// Frees the state of parameters that other ranks update.
  ShardedOptimizer(Run& run, const Communicator& ranks);

  /// As `Optimizer::step`, for update `run.updates`.
  void step(const Gradients& gradients, double learning_rate);
  /// Adds, on rank 0, the state of the other ranks to its own.
  void gather(std::map<std::string, Tensor>& state) const;
  bool sharded() const { return sharded_; }

 private:
  std::span<const NamedParameter> parameters_of(Index rank) const;
  Index elements_of(Index rank) const;
  void exchange();

  Run& run_;
  const Communicator& ranks_;
  bool sharded_;
  std::vector<std::size_t> begins_;  ///< in `run.parameters` of each rank's, and the end
  std::vector<float> bucket_;
};

}  // namespace qkv
