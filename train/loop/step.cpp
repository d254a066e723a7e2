#include "train/loop/step.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

namespace qkv {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Adds the weighted *sum* of the losses and its gradients.
void add_chunk(StepGradients& sum, const Training& training, std::span<const Index> examples,
               const Random& random, bool recomputes) {
  const auto start = Clock::now();
  Context context({.random = random, .recompute = recomputes});
  BatchLoss batch = training.loss(examples, context);
  Tensor loss = batch.value * batch.weight;
  batch.value = {};
  sum.loss += loss.item();
  sum.weight += batch.weight;
  const double forward_ms = milliseconds_since(start);
  sum.gradients = gradients_of(std::move(loss), std::move(sum.gradients));
  sum.forward_ms += forward_ms;
  sum.backward_ms += milliseconds_since(start) - forward_ms;
}

}  // namespace

Stepper::Stepper(const Training& training, const Communicator& ranks)
    : training_(training),
      ranks_(ranks),
      planner_(training, ranks),
      sampler_(training.size(Split::train), training.options().train.batch,
               training.options().seed),
      sum_(training.parameters, ranks) {}

Stepper::Batches Stepper::batches() {
  Batches batches;
  const Index count = training_.options().train.accumulate;
  for (Index i = 0; i < count; ++i) batches.push_back(sampler_.at(training_.step * count + i));
  return batches;
}

Index Stepper::tokens_of(const Batches& batches) const {
  Index tokens = 0;
  for (const auto& batch : batches)
    for (const Index example : batch) tokens += training_.tokens(example);
  return tokens;
}

StepGradients Stepper::gradients() {
  const Batches batches = this->batches();
  const StepPlan plan = planner_.plan(tokens_of(batches));
  PartialSums own = sums_of_lanes(plan, batches);
  const std::array all = {Subtree{0, plan.shards.count}};
  StepGradients sum = ranks_.size() == 1 ? std::move(tree_sums(all, own).front())
                                         : sum_.sum(plan.shards.count, std::move(own));
  sum.tokens = plan.tokens;
  const double factor = sum.weight > 0 ? 1 / sum.weight : 1;
  sum.loss *= factor;
  sum.gradients *= factor;
  return sum;
}

/// Computes this rank's shards, each lane some of them.
Stepper::PartialSums Stepper::sums_of_lanes(const StepPlan& plan, const Batches& batches) {
  const Chunks by_lane{plan.own_shards, plan.lanes};
  const auto count = static_cast<std::size_t>(plan.lanes);
  while (pools_.size() < count) pools_.emplace_back();
  std::vector<PartialSums> sums(count);
  std::vector<std::exception_ptr> errors(count);
  parallel_lanes(plan.lanes, plan.threads_per_lane, [&](Index i) {
    const auto lane = static_cast<std::size_t>(i);
    const MemoryPool::Use use(pools_[lane]);
    const Index begin = plan.first_shard + by_lane.begin(i),
                end = plan.first_shard + by_lane.end(i);
    try {
      for (const Subtree node : subtrees(begin, end))
        sums[lane].push_back({node, subtree_gradients(node, plan, batches)});
    } catch (...) {
      errors[lane] = std::current_exception();
    }
  });
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  PartialSums all;
  for (PartialSums& lane : sums) std::ranges::move(lane, std::back_inserter(all));
  return all;
}

StepGradients Stepper::subtree_gradients(Subtree node, const StepPlan& plan,
                                         const Batches& batches) const {
  const auto shard = [&](Subtree part) -> std::optional<StepGradients> {
    if (part.count > 1) return std::nullopt;
    return shard_gradients(part.first, plan, batches);
  };
  return tree_sum(node, shard,
                  [](StepGradients& sum, StepGradients term) { sum += std::move(term); });
}

/// A chunk's random stream has the number of its first example in the order of training, which no
/// other chunk has, also where a step has another number of shards.
StepGradients Stepper::shard_gradients(Index shard, const StepPlan& plan,
                                       const Batches& batches) const {
  StepGradients sum;
  for (std::size_t i = 0; i < batches.size(); ++i)
    for (Index chunk = plan.shards.begin(shard); chunk < plan.shards.end(shard); ++chunk) {
      const auto begin = static_cast<std::size_t>(plan.chunks.begin(chunk));
      const auto end = static_cast<std::size_t>(plan.chunks.end(chunk));
      const auto micro_batch = static_cast<std::uint64_t>(training_.step) * batches.size() + i;
      const auto first = micro_batch * batches[i].size() + begin;
      add_chunk(sum, training_, std::span(batches[i]).subspan(begin, end - begin),
                Random(training_.options().seed, Purpose::dropout, first), plan.recomputes);
    }
  return sum;
}

void Stepper::trim() {
  for (MemoryPool& pool : pools_) pool.trim();
}

std::size_t Stepper::system_bytes() const {
  std::size_t bytes = 0;
  for (const MemoryPool& pool : pools_) bytes += pool.system_bytes();
  return bytes;
}

}  // namespace qkv
