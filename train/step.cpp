#include "train/step.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace qkv {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// A model of more parameters has one shard. A batch of more operations is divided into chunks of
/// about so many tokens. In one of fewer than the last, ops are too short to be shared by threads.
constexpr Index large_model = Index{1} << 22, chunk_tokens = 256;
constexpr double large_batch = 1e10, short_batch = 1e9;

/// Adds the *sum* of the losses and its gradients.
void add_chunk(StepGradients& sum, const Run& run, std::span<const Index> examples,
               const Random& random) {
  const auto start = Clock::now();
  Context context({.random = random});
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

void add(StepGradients& sum, StepGradients shard) {
  sum.loss += shard.loss;
  sum.targets += shard.targets;
  sum.gradients += std::move(shard.gradients);
  sum.forward_ms += shard.forward_ms;
  sum.backward_ms += shard.backward_ms;
}

}  // namespace

Stepper::Stepper(const Run& run)
    : run_(run),
      parameters_(parameter_count(*run.network)),
      sampler_(run.task->size(Split::train), run.config.train.batch, run.config.seed, run.order) {}

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
  // Forward takes about 2 operations a token and parameter, backward twice as many.
  const double operations = 6 * static_cast<double>(tokens) * static_cast<double>(parameters_);
  const Index shards = parameters_ > large_model ? 1 : std::min(max_shards, batch);
  const Index chunks = operations < large_batch
                           ? 1
                           : std::clamp<Index>(tokens / (shards * chunk_tokens), 1, batch / shards);
  return {{batch, shards * chunks},
          {shards * chunks, shards},
          threads() <= max_shards || operations < short_batch};
}

StepGradients Stepper::gradients() {
  const Batches batches = this->batches();
  const Index tokens = tokens_of(batches);
  const Plan plan = this->plan(tokens / std::ssize(batches));

  std::array<StepGradients, max_shards> shards;
  std::array<std::exception_ptr, max_shards> errors;
  const auto compute = [&, execution = Execution::current()](Index i) {
    const auto shard = static_cast<std::size_t>(i);
    const ExecutionScope scope(execution.with_memory(pools_[shard]));
    try {
      shards[shard] = shard_gradients(i, plan, batches);
    } catch (...) {
      errors[shard] = std::current_exception();
    }
  };
  if (plan.parallel)
    parallel_for(plan.shards.count, compute);
  else
    for (Index i = 0; i < plan.shards.count; ++i) compute(i);
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);

  StepGradients sum = std::move(shards.front());
  for (std::size_t i = 1; i < shards.size(); ++i) add(sum, std::move(shards[i]));
  sum.tokens = tokens;
  const double per_target = 1 / static_cast<double>(std::max<Index>(sum.targets, 1));
  sum.loss *= per_target;
  sum.gradients *= per_target;
  return sum;
}

StepGradients Stepper::shard_gradients(Index shard, const Plan& plan,
                                       const Batches& batches) const {
  StepGradients sum;
  for (std::size_t i = 0; i < batches.size(); ++i)
    for (Index chunk = plan.shards.begin(shard); chunk < plan.shards.end(shard); ++chunk) {
      const auto number = run_.step * std::ssize(batches) + static_cast<std::int64_t>(i);
      const auto begin = static_cast<std::size_t>(plan.chunks.begin(chunk));
      const auto end = static_cast<std::size_t>(plan.chunks.end(chunk));
      add_chunk(sum, run_, std::span(batches[i]).subspan(begin, end - begin),
                Random(run_.config.seed, Purpose::dropout,
                       static_cast<std::uint64_t>(number * plan.chunks.count + chunk)));
    }
  return sum;
}

std::size_t Stepper::system_allocations() const {
  std::size_t count = 0;
  for (const MemoryPool& pool : pools_) count += pool.system_allocations();
  return count;
}

}  // namespace qkv
