// Single ops with Google Benchmark: time, and operations a second where they are counted.
#include "core/ops.h"

#include <benchmark/benchmark.h>

#include "core/autograd.h"
#include "core/memory.h"
#include "core/parameter.h"

namespace {

using namespace qkv;

Tensor random_tensor(const Shape& shape) {
  const Random random(1, Purpose::testing);
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = random.normal(i);
  return Tensor::from(values, shape, DType::float32);
}

/// Times `work` with tensor memory that is reused, as training does.
template <class Work>
void time(benchmark::State& state, Work work) {
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  for (auto _ : state) work();
}

void count_operations(benchmark::State& state, double operations) {
  state.counters["FLOP/s"] = benchmark::Counter(
      operations * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

/// rows, input width, output width
void linear_forward(benchmark::State& state) {
  const Tensor x = random_tensor({state.range(0), state.range(1)});
  const Tensor weight = random_tensor({state.range(2), state.range(1)});
  time(state, [&] { benchmark::DoNotOptimize(linear(x, weight, {})); });
  count_operations(state, 2.0 * static_cast<double>(x.size() * state.range(2)));
}
BENCHMARK(linear_forward)->Args({256, 32, 128})->Args({768, 128, 512})->Args({1024, 384, 1536});

/// batch, tokens, width, heads
void attention_forward(benchmark::State& state) {
  const Tensor x = random_tensor({state.range(0), state.range(1), state.range(2)});
  const AttentionOptions options{.heads = state.range(3), .scale = 0.2};
  const AttentionMask mask{{}, true};
  const Random random(1, Purpose::dropout);
  time(state, [&] { benchmark::DoNotOptimize(attention(x, x, x, mask, options, random)); });
}
void attention_with_backward(benchmark::State& state) {
  const Parameter x(random_tensor({state.range(0), state.range(1), state.range(2)}));
  const AttentionOptions options{.heads = state.range(3), .scale = 0.2};
  const AttentionMask mask{{}, true};
  const Random random(1, Purpose::dropout);
  const Tensor& in = x.value();
  time(state, [&] {
    benchmark::DoNotOptimize(gradients_of(sum(attention(in, in, in, mask, options, random))));
  });
}
void attention_shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({32, 8, 32, 4})->Args({12, 64, 128, 4})->Args({4, 256, 384, 6});
}
BENCHMARK(attention_forward)->Apply(attention_shapes);
BENCHMARK(attention_with_backward)->Apply(attention_shapes);

Tensor softmax_of_rows(const Tensor& x) {
  return softmax(x);
}

/// rows, width
template <Tensor (*op)(const Tensor&)>
void on_rows(benchmark::State& state) {
  const Tensor x = random_tensor({state.range(0), state.range(1)});
  time(state, [&] { benchmark::DoNotOptimize(op(x)); });
  state.SetItemsProcessed(state.iterations() * x.size());
}
BENCHMARK(on_rows<gelu>)->Name("gelu")->Args({768, 512});
BENCHMARK(on_rows<tanh>)->Name("tanh")->Args({768, 512});
BENCHMARK(on_rows<softmax_of_rows>)->Name("softmax")->Args({768, 64})->Args({256, 65});

void layer_norm_forward(benchmark::State& state) {
  const Tensor x = random_tensor({state.range(0), state.range(1)});
  const Tensor gain = random_tensor({state.range(1)});
  time(state, [&] { benchmark::DoNotOptimize(layer_norm(x, gain, {}, 1e-5)); });
  state.SetItemsProcessed(state.iterations() * x.size());
}
BENCHMARK(layer_norm_forward)->Args({256, 32})->Args({768, 128});

}  // namespace

BENCHMARK_MAIN();
