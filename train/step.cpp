#include "train/step.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "core/parallel.h"

namespace qkv {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// A model of more parameters has one lane, whose parts have about so many tokens if the whole
/// would take more operations than this. In a step of fewer than the last, ops are too short for
/// sharing out.
constexpr Index large_model = Index{1} << 22, part_tokens = 256;
constexpr double large_step = 1e10, short_step = 1e9;

double operations(const Run& run, Index tokens) {
  return 6 * static_cast<double>(tokens) * static_cast<double>(parameter_count(*run.network));
}

/// How many parts a lane has when `lanes` lanes take `batch` examples of `tokens` tokens.
Index parts_of_lane(const Run& run, Index lanes, Index batch, Index tokens) {
  if (operations(run, tokens) < large_step) return 1;
  return std::clamp<Index>(tokens / (lanes * part_tokens), 1, batch / lanes);
}

/// Adds the *sum* of the losses and its derivatives.
void add_part(StepGradients& sum, const Run& run, std::span<const Index> examples,
              const Random& random) {
  const auto start = Clock::now();
  Context context(random);
  auto [mean, tokens, targets] = run.task->loss(*run.network, examples, context);
  Tensor loss = mean * static_cast<double>(targets);
  mean = {};
  sum.loss += loss.item();
  sum.tokens += tokens;
  sum.targets += targets;
  const double forward_ms = milliseconds_since(start);
  sum.gradients = gradients_of(std::move(loss), std::move(sum.gradients));
  sum.forward_ms += forward_ms;
  sum.backward_ms += milliseconds_since(start) - forward_ms;
}

void add(StepGradients& sum, StepGradients lane) {
  sum.loss += lane.loss;
  sum.tokens += lane.tokens;
  sum.targets += lane.targets;
  sum.gradients += std::move(lane.gradients);
  sum.forward_ms += lane.forward_ms;
  sum.backward_ms += lane.backward_ms;
}

}  // namespace

Stepper::Stepper(const Run& run)
    : run_(run),
      sampler_(run.task->size(Split::train), run.config.train.batch, run.config.seed),
      tokens_(run.config.train.batch * run.config.model.max_length) {
  const Index batch = run.config.train.batch;
  const Index lanes = parameter_count(*run.network) > large_model ? 1 : std::min(most_lanes, batch);
  parts_ = {batch, lanes * parts_of_lane(run, lanes, batch, tokens_)};
  lanes_ = {parts_.count, lanes};
}

StepGradients Stepper::gradients() {
  std::vector<std::vector<Index>> batches;
  const Index count = run_.config.train.accumulate;
  for (Index i = 0; i < count; ++i) batches.push_back(sampler_.at(run_.step * count + i));

  std::array<StepGradients, most_lanes> lanes;
  std::array<std::exception_ptr, most_lanes> errors;
  const bool detect = anomalies_are_detected();
  const auto compute = [&](Index i) {
    const auto lane = static_cast<std::size_t>(i);
    const MemoryPool::Use use(pools_[lane]);
    std::optional<DetectAnomaly> detecting;
    if (detect) detecting.emplace();
    try {
      lanes[lane] = lane_gradients(i, batches);
    } catch (...) {
      errors[lane] = std::current_exception();
    }
  };
  if (threads() <= most_lanes || operations(run_, tokens_) < short_step)
    parallel_for(lanes_.count, compute);
  else
    for (Index i = 0; i < lanes_.count; ++i) compute(i);
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);

  StepGradients sum = std::move(lanes.front());
  for (std::size_t i = 1; i < lanes.size(); ++i) add(sum, std::move(lanes[i]));
  tokens_ = sum.tokens;
  const double share = 1 / static_cast<double>(std::max<Index>(sum.targets, 1));
  sum.loss *= share;
  sum.gradients *= share;
  return sum;
}

StepGradients Stepper::lane_gradients(Index lane,
                                      const std::vector<std::vector<Index>>& batches) const {
  StepGradients sum;
  for (std::size_t i = 0; i < batches.size(); ++i)
    for (Index part = lanes_.begin(lane); part < lanes_.end(lane); ++part) {
      const auto number = run_.step * std::ssize(batches) + static_cast<std::int64_t>(i);
      const auto begin = static_cast<std::size_t>(parts_.begin(part));
      const auto end = static_cast<std::size_t>(parts_.end(part));
      add_part(sum, run_, std::span(batches[i]).subspan(begin, end - begin),
               Random(run_.config.seed, Purpose::dropout,
                      static_cast<std::uint64_t>(number * parts_.count + part)));
    }
  return sum;
}

std::size_t Stepper::system_allocations() const {
  std::size_t count = 0;
  for (const MemoryPool& pool : pools_) count += pool.system_allocations();
  return count;
}

}  // namespace qkv
