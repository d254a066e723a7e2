#include "train/step.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "core/parallel.h"

namespace qkv {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// A model of more parameters has one lane. A batch of more operations is cut into parts of about
/// so many tokens. In one of fewer than the last, ops are too short for sharing out.
constexpr Index large_model = Index{1} << 22, part_tokens = 256;
constexpr double large_batch = 1e10, short_batch = 1e9;

/// Adds the *sum* of the losses and its derivatives.
void add_part(StepGradients& sum, const Run& run, std::span<const Index> examples,
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

void add(StepGradients& sum, StepGradients lane) {
  sum.loss += lane.loss;
  sum.targets += lane.targets;
  sum.gradients += std::move(lane.gradients);
  sum.forward_ms += lane.forward_ms;
  sum.backward_ms += lane.backward_ms;
}

}  // namespace

Stepper::Stepper(const Run& run)
    : run_(run),
      parameters_(parameter_count(*run.network)),
      sampler_(run.task->size(Split::train), run.config.train.batch, run.config.seed) {}

double Stepper::operations(Index tokens) const {
  return 6 * static_cast<double>(tokens) * static_cast<double>(parameters_);
}

Stepper::Batches Stepper::batches() {
  Batches batches;
  const Index count = run_.config.train.accumulate;
  for (Index i = 0; i < count; ++i) batches.push_back(sampler_.at(run_.step * count + i));
  return batches;
}

Stepper::Cut Stepper::cut(Index tokens) const {
  const Index batch = run_.config.train.batch;
  const Index lanes = parameters_ > large_model ? 1 : std::min(most_lanes, batch);
  const Index parts = operations(tokens) < large_batch
                          ? 1
                          : std::clamp<Index>(tokens / (lanes * part_tokens), 1, batch / lanes);
  return {{batch, lanes * parts}, {lanes * parts, lanes}};
}

StepGradients Stepper::gradients() {
  const Batches batches = this->batches();
  Index tokens = 0;
  for (const auto& batch : batches)
    for (const Index example : batch) tokens += run_.task->tokens(example);
  const Index tokens_of_batch = tokens / std::ssize(batches);
  const Cut cut = this->cut(tokens_of_batch);

  std::array<StepGradients, most_lanes> lanes;
  std::array<std::exception_ptr, most_lanes> errors;
  const auto compute = [&, execution = Execution::current()](Index i) {
    const auto lane = static_cast<std::size_t>(i);
    const ExecutionScope scope(execution.with_memory(pools_[lane]));
    try {
      lanes[lane] = lane_gradients(i, cut, batches);
    } catch (...) {
      errors[lane] = std::current_exception();
    }
  };
  if (threads() <= most_lanes || operations(tokens_of_batch) < short_batch)
    parallel_for(cut.lanes.count, compute);
  else
    for (Index i = 0; i < cut.lanes.count; ++i) compute(i);
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);

  StepGradients sum = std::move(lanes.front());
  for (std::size_t i = 1; i < lanes.size(); ++i) add(sum, std::move(lanes[i]));
  sum.tokens = tokens;
  const double share = 1 / static_cast<double>(std::max<Index>(sum.targets, 1));
  sum.loss *= share;
  sum.gradients *= share;
  return sum;
}

StepGradients Stepper::lane_gradients(Index lane, const Cut& cut, const Batches& batches) const {
  StepGradients sum;
  for (std::size_t i = 0; i < batches.size(); ++i)
    for (Index part = cut.lanes.begin(lane); part < cut.lanes.end(lane); ++part) {
      const auto number = run_.step * std::ssize(batches) + static_cast<std::int64_t>(i);
      const auto begin = static_cast<std::size_t>(cut.parts.begin(part));
      const auto end = static_cast<std::size_t>(cut.parts.end(part));
      add_part(sum, run_, std::span(batches[i]).subspan(begin, end - begin),
               Random(run_.config.seed, Purpose::dropout,
                      static_cast<std::uint64_t>(number * cut.parts.count + part)));
    }
  return sum;
}

std::size_t Stepper::system_allocations() const {
  std::size_t count = 0;
  for (const MemoryPool& pool : pools_) count += pool.system_allocations();
  return count;
}

}  // namespace qkv
