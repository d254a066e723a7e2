#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/autograd.h"
#include "core/joining_thread.h"
#include "core/parallel.h"
#include "core/parameter.h"
#include "train/ranks/communicator.h"
#include "train/ranks/shard_tree.h"

namespace qkv {

/// What a training step tells of itself besides its gradients.
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

/// Sums the gradients of a step's shards over the ranks that computed them. Of the elements of all
/// gradients, laid end to end, each rank adds a slice, in the order of the tree
/// (train/ranks/shard_tree.h): it receives that slice of every partial sum (reduce-scatter) and sends
/// what it summed to the others (all-gather). So a rank sends and receives about two times the
/// bytes of its gradients, however many ranks there are.
///
/// Backward completes the gradients of the last layers first. So they are laid in the reverse order
/// of the parameters, and a thread exchanges them bucket by bucket, each as soon as this rank's
/// gradients in it are complete, while backward computes the others (as PyTorch's
/// DistributedDataParallel; Li et al. 2020).
class GradientSum {
 public:
  GradientSum(std::span<const NamedParameter> parameters, const Communicator& ranks);
  ~GradientSum() { cancel(); }
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  /// Which of a step's shards each rank computes.
  Chunks shards_by_rank(Index shards) const { return {shards, ranks_.size()}; }

  /// Begins the sum over a step's shards. Until it has finished, nothing else may be exchanged.
  void begin(Index shards);
  /// Adds what this rank computed of some of its shards. Threads may add in any order.
  void add(PartialSum<StepGradients> sum);
  /// Adds the gradient of one parameter of a shard ahead of the rest.
  void add(Subtree shard, const Node* parameter, Tensor gradient);
  /// The sum over all shards, the same on every rank. Throws what the exchange threw.
  StepGradients finish();
  /// Ends the exchange, if one runs, where this rank cannot add all its shards.
  void cancel();

 private:
  /// What this rank has of a parameter.
  struct Entry {
    const Parameter* parameter;
    Index begin, end;  ///< its elements, of all that are laid end to end

    // Of the current step.
    std::vector<PartialSum<Gradients>> terms;  ///< that were added, each of one gradient or none
    Index added_shards;                        ///< in `terms`
    std::vector<Tensor> partial_sums;  ///< over this rank's `subtrees`; empty where there is none
    Tensor sum;                        ///< over all ranks
  };

  std::span<const Subtree> own_subtrees() const;
  bool complete(const Entry& entry) const { return entry.added_shards == own_shards_; }
  void add(Entry& entry, Subtree subtree, Tensor gradient);
  void exchange();
  void add_terms(Entry& entry) const;
  void exchange_bucket(Index begin, Index end);
  StepStatistics sum_of_statistics();
  Gradients sum_of_gradients();
  std::vector<Index> block_sizes(std::size_t bytes) const;
  template <class Use>
  void for_each_part(Index begin, Index end, const Use& use);

  const Communicator& ranks_;
  std::vector<Entry> entries_;  ///< of the parameters that are not frozen
  std::unordered_map<const Node*, std::size_t> positions_;

  // Of the current step.
  Index shards_ = 0, own_shards_ = 0;
  std::vector<Subtree> subtrees_;                       ///< of the partial sums of all ranks
  std::vector<Index> counts_;                           ///< of the partial sums of each rank
  std::size_t first_own_ = 0;                           ///< of `subtrees_`
  std::vector<PartialSum<StepStatistics>> statistics_;  ///< of this rank
  std::vector<float> sent_, received_, bucket_;

  std::mutex mutex_;  ///< of what is added and `cancelled_`
  std::condition_variable changed_;
  bool cancelled_ = false;
  std::exception_ptr error_;
  JoiningThread thread_;
};

}  // namespace qkv
