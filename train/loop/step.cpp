#include "train/loop/step.h"

#include <algorithm>
#include <array>
#include <bit>
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

/// A model of more parameters is large.
constexpr Index large_model = Index{1} << 22;
constexpr Index shard_tokens = 1024, max_shards = 1024;
constexpr double shard_operations = 2.5e8;
/// A batch of more operations is divided into chunks of about so many tokens. In one of fewer than
/// the last, ops are too short to be shared by threads.
constexpr Index chunk_tokens = 256;
constexpr double large_batch = 1e10, short_batch = 1e9;

/// Forward takes about 2 operations a token and parameter, backward twice as many.
double operations_of(Index parameters, Index tokens) {
  return 6 * static_cast<double>(tokens) * static_cast<double>(parameters);
}

/// Adds the weighted *sum* of the losses and its gradients, but for those that the hook takes.
void add_chunk(StepGradients& sum, const Run& run, std::span<const Index> examples,
               const Random& random, bool recomputes, const GradientHook& hook) {
  const auto start = Clock::now();
  Context context({.random = random, .recompute = recomputes});
  BatchLoss batch = run.task->loss(*run.network, examples, context);
  Tensor loss = batch.value * batch.weight;
  batch.value = {};
  sum.loss += loss.item();
  sum.weight += batch.weight;
  const double forward_ms = milliseconds_since(start);
  sum.gradients = gradients_of(std::move(loss), std::move(sum.gradients), hook);
  sum.forward_ms += forward_ms;
  sum.backward_ms += milliseconds_since(start) - forward_ms;
}

}  // namespace

Index shard_count(Index parameters, Index examples, Index tokens) {
  const double paying = std::min(static_cast<double>(tokens) / static_cast<double>(shard_tokens),
                                 operations_of(parameters, tokens) / shard_operations);
  const Index least = parameters > large_model ? 1 : 2, most = std::min(max_shards, examples);
  const auto count = static_cast<Index>(std::min(paying, static_cast<double>(most)));
  return static_cast<Index>(
      std::bit_floor(static_cast<std::size_t>(std::min(std::max(count, least), most))));
}

Stepper::Stepper(const Run& run, const Communicator& ranks)
    : run_(run),
      ranks_(ranks),
      parameters_(parameter_count(*run.network)),
      needs_(memory_needs(run.config, run.task->vocabulary().size(), run.task->outputs())),
      budget_(memory_budget(run.config.train)),
      sampler_(run.task->size(Split::train), run.config.train.batch, run.config.seed, run.order),
      sum_(run.parameters, ranks) {}

Stepper::Batches Stepper::batches() {
  Batches batches;
  const Index count = run_.config.train.accumulate;
  for (Index i = 0; i < count; ++i) batches.push_back(sampler_.at(run_.step * count + i));
  return batches;
}

Index Stepper::tokens_of(const Batches& batches) const {
  Index tokens = 0;
  for (const auto& batch : batches)
    for (const Index example : batch) tokens += run_.task->tokens(example);
  return tokens;
}

Stepper::Plan Stepper::plan(Index tokens) const {
  const Index batch = run_.config.train.batch;
  const double operations = operations_of(parameters_, tokens);
  const Index shards = shard_count(parameters_, batch, tokens);
  const Index chunks = operations < large_batch
                           ? 1
                           : std::clamp<Index>(tokens / (shards * chunk_tokens), 1, batch / shards);
  return {{batch, shards * chunks},
          {shards * chunks, shards},
          operations,
          static_cast<double>(tokens) / static_cast<double>(shards * chunks)};
}

Index Stepper::shards() {
  const Batches batches = this->batches();
  return plan(tokens_of(batches) / std::ssize(batches)).shards.count;
}

Stepper::Strategy Stepper::strategy() {
  const Batches batches = this->batches();
  return strategy(plan(tokens_of(batches) / std::ssize(batches)));
}

Index Stepper::own_shards(const Plan& plan) const {
  const Chunks by_rank = sum_.shards_by_rank(plan.shards.count);
  return by_rank.end(ranks_.rank()) - by_rank.begin(ranks_.rank());
}

/// As many as are fastest.
Index Stepper::lanes(const Plan& plan) const {
  const Index shards = own_shards(plan);
  const bool share_ops = threads() > shards && plan.operations >= short_batch;
  if (share_ops || parameters_ > large_model) return 1;
  return std::clamp<Index>(shards, 1, threads());
}

/// Of the memory that the step takes.
double Stepper::bytes(const Plan& plan, const Strategy& strategy) const {
  const Index shards = std::max<Index>(own_shards(plan) / strategy.lanes, 1);
  const auto gradients = static_cast<double>(std::bit_width(static_cast<std::size_t>(shards)));
  const double activations =
      activation_bytes(run_.config, run_.task->outputs(), plan.chunk_tokens, strategy.recomputes);
  return needs_.state +
         static_cast<double>(strategy.lanes) * (gradients * needs_.gradients + activations);
}

/// The fastest that keeps to the budget, or else the one that takes least.
Stepper::Strategy Stepper::strategy(const Plan& plan) const {
  const Strategy fastest{lanes(plan), false};
  for (const Strategy& one : {fastest, Strategy{1, false}})
    if (!budget_ || bytes(plan, one) <= *budget_) return one;
  return {1, true};
}

StepGradients Stepper::gradients() {
  const Batches batches = this->batches();
  const Index tokens = tokens_of(batches);
  const Plan plan = this->plan(tokens / std::ssize(batches));
  StepGradients sum =
      ranks_.size() == 1 ? sum_of_lanes(plan, batches) : sum_of_ranks(plan, batches);
  sum.tokens = tokens;
  const double factor = sum.weight > 0 ? 1 / sum.weight : 1;
  sum.loss *= factor;
  sum.gradients *= factor;
  return sum;
}

/// Calls `compute(lane, begin, end)` for this rank's shards that are each lane's.
template <class Compute>
void Stepper::in_lanes(const Plan& plan, Index lanes, const Compute& compute) {
  const Chunks by_rank = sum_.shards_by_rank(plan.shards.count);
  const Index first = by_rank.begin(ranks_.rank());
  const Chunks by_lane{own_shards(plan), lanes};
  const auto count = static_cast<std::size_t>(lanes);
  while (pools_.size() < count) pools_.emplace_back();
  std::vector<std::exception_ptr> errors(count);
  parallel_for(lanes, [&, execution = Execution::current()](Index i) {
    const auto lane = static_cast<std::size_t>(i);
    const ExecutionScope scope(execution.with_memory(pools_[lane]));
    try {
      compute(lane, first + by_lane.begin(i), first + by_lane.end(i));
    } catch (...) {
      errors[lane] = std::current_exception();
    }
  });
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

StepGradients Stepper::sum_of_lanes(const Plan& plan, const Batches& batches) {
  const Strategy strategy = this->strategy(plan);
  std::vector<PartialSums> sums(static_cast<std::size_t>(strategy.lanes));
  in_lanes(plan, strategy.lanes, [&](std::size_t lane, Index begin, Index end) {
    for (const Subtree node : subtrees(begin, end))
      sums[lane].push_back({node, subtree_gradients(node, plan, batches, strategy.recomputes)});
  });
  PartialSums all;
  for (PartialSums& lane : sums) std::ranges::move(lane, std::back_inserter(all));
  return std::move(tree_sums(std::array{Subtree{0, plan.shards.count}}, all).front());
}

/// Exchanges gradients while the last shard of each lane computes the others.
StepGradients Stepper::sum_of_ranks(const Plan& plan, const Batches& batches) {
  const Strategy strategy = this->strategy(plan);
  sum_.begin(plan.shards.count);
  try {
    in_lanes(plan, strategy.lanes, [&](std::size_t, Index begin, Index end) {
      if (begin == end) return;
      const Subtree last{end - 1, 1};
      for (const Subtree node : subtrees(begin, last.first))
        sum_.add({node, subtree_gradients(node, plan, batches, strategy.recomputes)});
      const auto hook = [&](const Node* parameter, Tensor gradient) {
        sum_.add(last, parameter, std::move(gradient));
      };
      sum_.add({last, shard_gradients(last.first, plan, batches, strategy.recomputes, hook)});
    });
  } catch (...) {
    sum_.cancel();
    throw;
  }
  return sum_.finish();
}

StepGradients Stepper::subtree_gradients(Subtree node, const Plan& plan, const Batches& batches,
                                         bool recomputes) const {
  const auto shard = [&](Subtree part) -> std::optional<StepGradients> {
    if (part.count > 1) return std::nullopt;
    return shard_gradients(part.first, plan, batches, recomputes);
  };
  return tree_sum(node, shard,
                  [](StepGradients& sum, StepGradients term) { sum += std::move(term); });
}

/// The hook takes gradients of the last chunk, in which they become those of the shard. A chunk's
/// random stream has the number of its first example in the order of training, which no other chunk
/// has, also where a step has another number of shards.
StepGradients Stepper::shard_gradients(Index shard, const Plan& plan, const Batches& batches,
                                       bool recomputes, const GradientHook& hook) const {
  StepGradients sum;
  for (std::size_t i = 0; i < batches.size(); ++i)
    for (Index chunk = plan.shards.begin(shard); chunk < plan.shards.end(shard); ++chunk) {
      const auto begin = static_cast<std::size_t>(plan.chunks.begin(chunk));
      const auto end = static_cast<std::size_t>(plan.chunks.end(chunk));
      const auto micro_batch = static_cast<std::uint64_t>(run_.step) * batches.size() + i;
      const auto first = micro_batch * batches[i].size() + begin;
      const bool last = i + 1 == batches.size() && chunk + 1 == plan.shards.end(shard);
      add_chunk(sum, run_, std::span(batches[i]).subspan(begin, end - begin),
                Random(run_.config.seed, Purpose::dropout, first), recomputes,
                last ? hook : GradientHook());
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
