#pragma once

#include <span>
#include <vector>

#include "core/autograd.h"
#include "core/parallel.h"
#include "core/parameter.h"
#include "train/ranks/communicator.h"
#include "train/ranks/shard_tree.h"

namespace qkv {

/// Measurements of a training step, besides its gradients.
struct StepStatistics {
  double loss = 0;
  Index tokens = 0;                        ///< that the model read, without padding
  double weight = 0;                       ///< of the targets, over which the loss is the mean
  double forward_ms = 0, backward_ms = 0;  ///< summed over the chunks

  StepStatistics& operator+=(const StepStatistics& other);
};

/// The weighted mean loss of examples, over all their targets, and its gradients.
struct StepGradients : StepStatistics {
  Gradients gradients;

  StepGradients& operator+=(StepGradients other);
};

/// Sums the gradients of a step's shards over the ranks that computed them. Each rank adds a slice
/// of the elements of all gradients, laid end to end, in the order of the tree
/// (train/ranks/shard_tree.h): it receives that slice of every partial sum (reduce-scatter) and
/// sends what it summed to the others (all-gather). So a rank sends and receives about two times
/// the bytes of its gradients, however many ranks there are.
class GradientSum {
 public:
  /// Both must outlive the sum.
  GradientSum(std::span<const NamedParameter> parameters, const Communicator& ranks)
      : parameters_(parameters), ranks_(ranks) {}

  /// The sum over all shards of a step, the same on every rank. `own`: partial sums that make up
  /// the shards of this rank, in any order.
  StepGradients sum(Index shards, std::vector<PartialSum<StepGradients>> own);

 private:
  /// The gradients of a parameter on this rank.
  struct Entry {
    const Node* parameter;
    Index begin, end;              ///< its elements, of all that are laid end to end
    std::vector<Tensor> partials;  ///< over this rank's subtrees; empty where there is none
    Tensor sum;                    ///< over all ranks
  };

  void divide(Index shards);
  std::vector<Entry> entries_of(std::vector<StepGradients>& own) const;
  StepStatistics sum_of_statistics(std::span<const StepGradients> own) const;
  std::vector<bool> present(std::span<const Entry> entries) const;
  void exchange(std::span<Entry> entries, Index begin, Index end);
  std::span<const Subtree> own_subtrees() const;
  std::vector<Index> block_sizes(std::size_t bytes) const;

  std::span<const NamedParameter> parameters_;
  const Communicator& ranks_;

  // State of the current step.
  Index shards_ = 0;
  std::vector<Subtree> subtrees_;  ///< of the partial sums of all ranks
  std::vector<Index> counts_;      ///< of the partial sums of each rank
  std::size_t first_own_ = 0;      ///< of `subtrees_`
  std::vector<float> sent_, received_, bucket_;
};

}  // namespace qkv
