#include "cli/step_benchmark.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <xtensor-blas/xblas.hpp>

#include "core/kernels/vector.h"
#include "core/parallel.h"
#include "core/platform.h"
#include "optim/clip.h"
#include "train/loop/step.h"
#include "train/tasks/generate.h"

/// A function of OpenBLAS, which CMake finds without its header.
extern "C" void openblas_set_num_threads(int count);

namespace qkv {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// The best of several runs of `work`, in 10^9 operations a second.
double best_gflops(double operations, const std::function<void()>& work) {
  double best = 0;
  for (int i = 0; i < 12; ++i) {
    const auto start = Clock::now();
    work();
    best = std::max(best, 1e-6 * operations / milliseconds(Clock::now() - start));
  }
  return best;
}

double sgemm_gflops() {
  constexpr int size = 1024;
  constexpr std::size_t count = std::size_t{size} * size;
  const std::vector<float> a(count, 0.5F), b(count, 0.25F);
  std::vector<float> c(count);
  openblas_set_num_threads(threads());
  const double best = best_gflops(2.0 * size * size * size, [&] {
    cxxblas::gemm(cxxblas::RowMajor, cxxblas::NoTrans, cxxblas::NoTrans, size, size, size, 1.0F,
                  a.data(), size, b.data(), size, 0.0F, c.data(), size);
  });
  openblas_set_num_threads(1);  // as the library's products need it
  return best;
}

/// The median duration of `repeat`, which runs for so many seconds and at least three times after
/// the first.
double median_ms(double seconds, const std::function<void()>& repeat) {
  std::vector<double> times;
  repeat();
  const auto begin = Clock::now();
  while (times.size() < 3 || milliseconds(Clock::now() - begin) < 1000 * seconds) {
    const auto start = Clock::now();
    repeat();
    times.push_back(milliseconds(Clock::now() - start));
  }
  return median(std::move(times));
}

double evaluation_ms(const Run& run, double seconds) {
  const NoGrad no_grad;
  std::vector<Index> batch(
      static_cast<std::size_t>(std::min(run.config.train.batch, run.task->size(Split::train))));
  std::iota(batch.begin(), batch.end(), Index{0});
  return median_ms(seconds, [&] {
    Context context;
    run.task->loss(*run.network, batch, context);
  });
}

/// Until the window is full, from one token.
std::optional<double> generated_tokens_per_second(const Run& run, double seconds) {
  if (run.config.task.kind != TaskKind::language_model) return std::nullopt;
  const Index count = run.config.model.max_length - 1;
  const double ms = median_ms(seconds, [&] {
    generate(*run.network, {Vocabulary::unknown + 1}, count, count + 1, {.temperature = 0},
             [](std::int32_t) {});
  });
  return 1000 * static_cast<double>(count) / ms;
}

/// Sums that wait for no other, more than a processor can begin to add to until the first is added.
constexpr int chains = 12;

/// Multiply-adds in registers, `chains` vectors of them a round.
[[gnu::flatten]] float multiply_add(Index rounds) {
  using kernels::unrolled;
  const auto factor = kernels::broadcast(0.999F), term = kernels::broadcast(1e-3F);
  kernels::Vector<float> sums[chains];
  unrolled<chains>([&](auto i) { sums[i] = kernels::broadcast(static_cast<float>(i)); });
  for (Index round = 0; round < rounds; ++round)
    unrolled<chains>([&](auto i) { sums[i] = sums[i] * factor + term; });
  kernels::Vector<float> all{};
  unrolled<chains>([&](auto i) { all += sums[i]; });
  return all[0];
}

double peak_gflops() {
  constexpr Index rounds = 200'000, operations = Index{2} * chains * kernels::width<float>;
  std::vector<float> results(static_cast<std::size_t>(threads()));
  const double best = best_gflops(static_cast<double>(rounds * operations * threads()), [&] {
    parallel_for(threads(), [&](Index thread) {
      results[static_cast<std::size_t>(thread)] = multiply_add(rounds);
    });
  });
  // Written to where the compiler cannot see it unused.
  [[maybe_unused]] volatile float used = results.front();
  return best;
}

/// Floating-point operations of a training step over `batch` sequences of `time` tokens: forward
/// and backward take 6 for each token and each weight of a product (Kaplan et al. 2020, "Scaling
/// Laws for Neural Language Models", 2.1), and attention 12 T D a block, half of that in a decoder,
/// whose scores above the diagonal need not be computed.
double step_operations(const Run& run, Index batch, Index time) {
  double weights = 0;
  for (const auto& [path, parameter] : run.parameters) {
    const Role role = parameter->role();
    const bool table = role == Role::position || (role == Role::embedding && run.network->head);
    if (parameter->shape().rank() == 2 && !table)
      weights += static_cast<double>(parameter->shape().size());
  }
  const ModelOptions& model = run.config.model;
  const double visible_keys = model.kind == ModelKind::decoder ? 0.5 : 1;
  const double attention =
      model.kind == ModelKind::static_embedding
          ? 0
          : visible_keys * 12.0 * static_cast<double>(model.layers * model.width * time);
  return static_cast<double>(batch * time) * (6 * weights + attention);
}

}  // namespace

Benchmark benchmark(Run& run, double seconds, const Communicator& ranks) {
  constexpr int warm_up = 5;
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  const TrainOptions& train = run.config.train;
  Stepper stepper(run, ranks);
  std::vector<double> forward, backward, update, whole;
  double tokens_a_step = 0;
  const auto begin = Clock::now();
  const auto go_on = [&](int i) {  // as long as rank 0 does
    const bool own = i < warm_up + 3 || milliseconds(Clock::now() - begin) < 1000 * seconds;
    return all_gather(ranks, own ? 1 : 0).front() == 1;
  };
  for (int i = 0; go_on(i); ++i) {
    const auto start = Clock::now();
    StepGradients now = stepper.gradients();
    const auto differentiated = Clock::now();
    clip_norm(now.gradients, train.clip);
    run.optimizer->step(run.parameters, now.gradients, run.config.optimizer.lr, run.step);
    ++run.step;
    const auto end = Clock::now();
    if (i < warm_up) continue;
    const double forward_fraction = now.forward_ms / (now.forward_ms + now.backward_ms);
    forward.push_back(forward_fraction * milliseconds(differentiated - start));
    backward.push_back((1 - forward_fraction) * milliseconds(differentiated - start));
    update.push_back(milliseconds(end - differentiated));
    whole.push_back(milliseconds(end - start));
    tokens_a_step = static_cast<double>(now.tokens);
  }
  const double step = median(whole),
               memory = static_cast<double>(platform::peak_memory()) / (1 << 20);
  const Index sequences = train.batch * train.accumulate;
  const auto time = static_cast<Index>(tokens_a_step) / sequences;
  return {.step_ms = step,
          .data_and_forward_ms = median(forward),
          .backward_ms = median(backward),
          .optimizer_ms = median(update),
          .evaluation_ms = evaluation_ms(run, seconds / 3),
          .tokens_per_second = 1000 * tokens_a_step / step,
          .generated_tokens_per_second = generated_tokens_per_second(run, seconds / 3),
          .gflops = 1e-6 * step_operations(run, sequences, time) / step,
          .sgemm_gflops = sgemm_gflops(),
          .peak_gflops = peak_gflops(),
          .peak_memory_mib = memory,
          .parameters = parameter_count(*run.network),
          .threads = threads(),
          .ranks = ranks.size()};
}

}  // namespace qkv
