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

/// A step of more operations is not cut; in one of fewer than the second, ops are too short for
/// sharing out.
constexpr double large_step = 1e10, short_step = 1e9;

double operations(const Run& run, Index tokens) {
  return 6 * static_cast<double>(tokens) * static_cast<double>(parameter_count(*run.network));
}

/// The *sum* of the losses and its derivatives.
StepGradients gradients_of_sum(const Run& run, std::span<const Index> examples,
                               const Random& random) {
  const auto start = Clock::now();
  Context context(random);
  auto [mean, tokens, targets] = run.task->loss(*run.network, examples, context);
  Tensor sum = mean * static_cast<double>(targets);
  mean = {};
  StepGradients part{sum.item(), tokens, targets, {}};
  part.forward_ms = milliseconds_since(start);
  part.gradients = gradients_of(std::move(sum));
  part.backward_ms = milliseconds_since(start) - part.forward_ms;
  return part;
}

void add(StepGradients& sum, StepGradients part) {
  sum.loss += part.loss;
  sum.tokens += part.tokens;
  sum.targets += part.targets;
  sum.gradients += std::move(part.gradients);
  sum.forward_ms += part.forward_ms;
  sum.backward_ms += part.backward_ms;
}

}  // namespace

Stepper::Stepper(const Run& run)
    : run_(run),
      sampler_(run.task->size(Split::train), run.config.train.batch, run.config.seed),
      tokens_(run.config.train.batch * run.config.model.max_length),
      parts_(operations(run, tokens_) < large_step ? std::min(most_parts, run.config.train.batch)
                                                   : 1) {}

StepGradients Stepper::gradients() {
  StepGradients sum;
  const Index batches = run_.config.train.accumulate;
  for (Index i = 0; i < batches; ++i) add_batch(sum, run_.step * batches + i);
  const double share = 1 / static_cast<double>(std::max<Index>(sum.targets, 1));
  sum.loss *= share;
  sum.gradients *= share;
  return sum;
}

void Stepper::add_batch(StepGradients& sum, std::int64_t number) {
  const auto examples = sampler_.at(number);
  const Pieces pieces{std::ssize(examples), parts_};
  std::array<StepGradients, most_parts> parts;
  std::array<std::exception_ptr, most_parts> errors;
  const bool detect = anomalies_are_detected();
  const auto compute = [&](Index i) {
    const auto part = static_cast<std::size_t>(i);
    const auto begin = static_cast<std::size_t>(pieces.begin(i));
    const auto end = static_cast<std::size_t>(pieces.end(i));
    const MemoryPool::Use use(pools_[part]);
    std::optional<DetectAnomaly> detecting;
    if (detect) detecting.emplace();
    try {
      parts[part] = gradients_of_sum(run_, std::span(examples).subspan(begin, end - begin),
                                     Random(run_.config.seed, Purpose::dropout,
                                            static_cast<std::uint64_t>(number * parts_ + i)));
    } catch (...) {
      errors[part] = std::current_exception();
    }
  };
  if (threads() <= most_parts || operations(run_, tokens_) < short_step)
    parallel_for(parts_, compute);
  else
    for (Index i = 0; i < parts_; ++i) compute(i);
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  tokens_ = 0;
  for (StepGradients& part : parts) {
    tokens_ += part.tokens;
    add(sum, std::move(part));
  }
}

std::size_t Stepper::system_allocations() const {
  std::size_t count = 0;
  for (const MemoryPool& pool : pools_) count += pool.system_allocations();
  return count;
}

}  // namespace qkv
