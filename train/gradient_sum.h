#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/autograd.h"
#include "core/parallel.h"
#include "core/parameter.h"
#include "train/communicator.h"
#include "train/shard_tree.h"

namespace qkv {

/// What a training step tells of itself besides its gradients.
struct StepStatistics {
  double loss = 0;
  Index tokens = 0;                        ///< that the model read, without padding
  Index targets = 0;                       ///< of which the loss is the mean
  double forward_ms = 0, backward_ms = 0;  ///< summed over the chunks

  StepStatistics& operator+=(const StepStatistics& other);
};

/// The mean loss of examples, over all their targets, and its gradients.
struct StepGradients : StepStatistics {
  Gradients gradients;

  StepGradients& operator+=(StepGradients other);
};

/// Sums the gradients of a step's shards over the ranks that computed them. Of the elements of all
/// gradients, laid end to end, each rank adds a slice, in the order of the tree
/// (train/shard_tree.h): it receives that slice of every partial sum (reduce-scatter) and sends
/// what it summed to the others (all-gather). So a rank sends and receives about two times the
/// bytes of its gradients, however many ranks there are.
class GradientSum {
 public:
  GradientSum(std::span<const NamedParameter> parameters, const Communicator& ranks);

  /// Which of a step's shards each rank computes.
  Chunks shards_by_rank(Index shards) const { return {shards, ranks_.size()}; }
  /// The sum over all shards, the same on every rank. `own` are the sums over this rank's
  /// `subtrees`.
  StepGradients operator()(std::vector<PartialSum<StepGradients>> own, Index shards);

 private:
  /// The gradient of each parameter of `order_`; empty where a partial sum has none.
  using Parts = std::vector<Tensor>;

  void list_partial_sums(Index shards);
  StepStatistics sum_of_statistics(const std::vector<PartialSum<StepGradients>>& own) const;
  void agree_on_order(const std::vector<Gradients::Entries>& own);
  Parts parts_of(Gradients::Entries entries) const;
  Gradients sum_of_gradients(std::vector<Gradients::Entries> own);
  /// Of the elements [begin, end) of the gradients laid end to end.
  void sum_bucket(const std::vector<Parts>& own, Parts& sum, Index begin, Index end);
  std::vector<Index> block_sizes(std::size_t bytes) const;
  /// That gradient i of `order_` belongs to.
  const Parameter& parameter(std::size_t i) const;
  template <class Use>
  void for_each_part(Index begin, Index end, const Use& use) const;

  std::span<const NamedParameter> parameters_;
  const Communicator& ranks_;
  std::unordered_map<const Node*, std::int32_t> positions_;  ///< in `parameters_`

  // Of the current step.
  Index shards_ = 0;
  std::vector<Subtree> subtrees_;    ///< of the partial sums of all ranks
  std::vector<Index> counts_;        ///< of the partial sums of each rank
  std::size_t first_own_ = 0;        ///< of `subtrees_`
  std::vector<std::int32_t> order_;  ///< the parameters that received a gradient, as a walk did
  std::vector<Index> begins_;        ///< of their gradients, laid end to end, and the end
  std::vector<float> sent_, received_, bucket_;
};

}  // namespace qkv
