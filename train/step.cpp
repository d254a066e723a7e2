#include "train/step.h"

#include <algorithm>
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

/// Adds the *sum* of the losses and its gradients.
void add_chunk(StepGradients& sum, const Run& run, std::span<const Index> examples,
               const Random& random, bool recomputes) {
  const auto start = Clock::now();
  Context context({.random = random, .recompute = recomputes});
  auto [mean, targets] = run.task->loss(*run.network, examples, context);
  Tensor loss = mean * static_cast<double>(targets);
  mean = {};
  sum.loss += loss.item();
  sum.targets += targets;
  const double forward_ms = milliseconds_since(start);
  sum.gradients = gradients_of(std::move(loss), std::move(sum.gradients));
  sum.forward_ms += forward_ms;
  sum.backward_ms += milliseconds_since(start) - forward_ms;
}

void add_gradients(StepGradients& sum, StepGradients term) {
  sum += std::move(term);
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
  StepGradients sum = sum_(own_sums(plan, batches), plan.shards.count);
  sum.tokens = tokens;
  const double per_target = 1 / static_cast<double>(std::max<Index>(sum.targets, 1));
  sum.loss *= per_target;
  sum.gradients *= per_target;
  return sum;
}

Stepper::PartialSums Stepper::own_sums(const Plan& plan, const Batches& batches) {
  const Chunks by_rank = sum_.shards_by_rank(plan.shards.count);
  const Index begin = by_rank.begin(ranks_.rank()), end = by_rank.end(ranks_.rank());
  const Strategy strategy = this->strategy(plan);
  const Chunks by_lane{end - begin, strategy.lanes};
  const auto count = static_cast<std::size_t>(by_lane.count);
  while (pools_.size() < count) pools_.emplace_back();

  std::vector<PartialSums> sums(count);
  std::vector<std::exception_ptr> errors(count);
  parallel_for(by_lane.count, [&, execution = Execution::current()](Index i) {
    const auto lane = static_cast<std::size_t>(i);
    const ExecutionScope scope(execution.with_memory(pools_[lane]));
    const auto leaf = [&](Subtree node) -> std::optional<StepGradients> {
      if (node.count > 1) return std::nullopt;
      return shard_gradients(node.first, plan, batches, strategy.recomputes);
    };
    try {
      for (const Subtree node : subtrees(begin + by_lane.begin(i), begin + by_lane.end(i)))
        sums[lane].push_back({node, tree_sum(node, leaf, add_gradients)});
    } catch (...) {
      errors[lane] = std::current_exception();
    }
  });
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);

  PartialSums of_lanes, own;
  for (PartialSums& lane : sums) std::ranges::move(lane, std::back_inserter(of_lanes));
  TakeInOrder take(of_lanes);
  for (const Subtree node : subtrees(begin, end))
    own.push_back({node, tree_sum(node, take, add_gradients)});
  return own;
}

StepGradients Stepper::shard_gradients(Index shard, const Plan& plan, const Batches& batches,
                                       bool recomputes) const {
  StepGradients sum;
  for (std::size_t i = 0; i < batches.size(); ++i)
    for (Index chunk = plan.shards.begin(shard); chunk < plan.shards.end(shard); ++chunk) {
      const auto number = run_.step * std::ssize(batches) + static_cast<std::int64_t>(i);
      const auto begin = static_cast<std::size_t>(plan.chunks.begin(chunk));
      const auto end = static_cast<std::size_t>(plan.chunks.end(chunk));
      add_chunk(sum, run_, std::span(batches[i]).subspan(begin, end - begin),
                Random(run_.config.seed, Purpose::dropout,
                       static_cast<std::uint64_t>(number * plan.chunks.count + chunk)),
                recomputes);
    }
  return sum;
}

std::size_t Stepper::system_allocations() const {
  std::size_t count = 0;
  for (const MemoryPool& pool : pools_) count += pool.system_allocations();
  return count;
}

}  // namespace qkv
