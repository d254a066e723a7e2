#include <doctest/doctest.h>

#include <functional>

#include "core/ops.h"
#include "core/parameter.h"
#include "tests/support/randn.h"

// Ops partition a large batch; each sequence must come out as it does alone, also with its own
// length.

namespace qkv::tests {
namespace {

constexpr Index batch = 40, time = 64, width = 12;

/// x [B, T, D], lengths [B], weights -> [B, ...]
using Op = std::function<Tensor(const Tensor& x, const Indices& lengths,
                                const std::vector<Parameter>& weights)>;

/// Lengths from 0 to `time`, no two neighbours of one length.
std::vector<std::int32_t> some_lengths() {
  std::vector<std::int32_t> lengths;
  for (Index b = 0; b < batch; ++b)
    lengths.push_back(static_cast<std::int32_t>(b * 23 % (time + 1)));
  return lengths;
}

Tensor one_by_one(const Op& op, const Tensor& x, const std::vector<std::int32_t>& lengths,
                  const std::vector<Parameter>& weights) {
  std::vector<Tensor> outputs;
  for (Index b = 0; b < batch; ++b)
    outputs.push_back(
        op(slice(x, 0, b, b + 1), Indices({lengths[static_cast<std::size_t>(b)]}, {1}), weights));
  return concatenate(outputs, 0);
}

void check_close(const Tensor& a, const Tensor& b, double tolerance) {
  REQUIRE(a.shape() == b.shape());
  const auto x = a.values(), y = b.values();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, std::abs(x[i] - y[i]) / std::max(1.0, std::abs(x[i])));
  CHECK(worst < tolerance);
}

/// Value and gradients by x and by the weights, of the whole batch and one by one.
void check_batch(const std::vector<Shape>& weight_shapes, const Op& op) {
  for (const auto& [dtype, tolerance] :
       {std::pair(DType::float64, 1e-10), std::pair(DType::float32, 3e-4)}) {
    const Parameter x(randn({batch, time, width}, dtype));
    std::vector<Parameter> weights;
    for (const Shape& shape : weight_shapes)
      weights.emplace_back(0.3 * randn(shape, dtype, weights.size() + 1));
    const auto lengths = some_lengths();
    const Tensor whole = op(x, Indices(lengths, {batch}), weights),
                 alone = one_by_one(op, x, lengths, weights);
    check_close(whole, alone, tolerance);
    const Tensor factors = randn(whole.shape(), dtype, 99);
    const Gradients a = gradients_of(sum(whole * factors)), b = gradients_of(sum(alone * factors));
    check_close(a.of(x), b.of(x), tolerance);
    for (const Parameter& weight : weights) check_close(a.of(weight), b.of(weight), tolerance);
  }
}

RecurrentWeights recurrent(const std::vector<Parameter>& w) {
  return {w[0], w[1], w[2], w[3]};
}

std::vector<Shape> recurrent_shapes(Index gates) {
  const Index rows = gates * 5;
  return {{rows, width}, {rows, 5}, {rows}, {rows}};
}

}  // namespace

TEST_CASE("recurrent ops give each of 40 sequences of different lengths what they give it alone") {
  for (const bool reverse : {false, true}) {
    CAPTURE(reverse);
    check_batch(recurrent_shapes(1), [=](const Tensor& x, const Indices& lengths, const auto& w) {
      return rnn(x, recurrent(w), lengths, reverse);
    });
    check_batch(recurrent_shapes(3), [=](const Tensor& x, const Indices& lengths, const auto& w) {
      return gru(x, recurrent(w), lengths, reverse);
    });
    check_batch(recurrent_shapes(4), [=](const Tensor& x, const Indices& lengths, const auto& w) {
      return lstm(x, recurrent(w), lengths, reverse);
    });
  }
}

TEST_CASE("recurrent ops start from each of 40 initial states, and give each last state") {
  // The first 5 values of a sequence are its initial state, the next 5 that of an lstm's cell.
  const auto values = [](const Tensor& x, Index begin) {
    return reshape(slice(slice(x, 1, 0, 1), 2, begin, begin + 5), {-1, 5});
  };
  const auto joined = [](const RecurrentOutput& y) {
    const auto row = [](const Tensor& state) { return reshape(state, {-1, 1, 5}); };
    return concatenate({y.states, row(y.last.h), row(y.last.c ? y.last.c : y.last.h)}, 1);
  };
  for (const bool reverse : {false, true}) {
    CAPTURE(reverse);
    check_batch(recurrent_shapes(1), [=](const Tensor& x, const Indices& lengths, const auto& w) {
      return joined(rnn(x, recurrent(w), lengths, {values(x, 0)}, reverse));
    });
    check_batch(recurrent_shapes(3), [=](const Tensor& x, const Indices& lengths, const auto& w) {
      return joined(gru(x, recurrent(w), lengths, {values(x, 0)}, reverse));
    });
    check_batch(recurrent_shapes(4), [=](const Tensor& x, const Indices& lengths, const auto& w) {
      return joined(lstm(x, recurrent(w), lengths, {values(x, 0), values(x, 5)}, reverse));
    });
  }
}

TEST_CASE("attention gives each of 40 sequences of different lengths what it gives it alone") {
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    check_batch({}, [=](const Tensor& x, const Indices& lengths, const auto&) {
      return attention(x, x, x, {lengths, causal}, {.heads = 2, .scale = 0.4},
                       Random(1, Purpose::dropout));
    });
  }
}

TEST_CASE("ops on a large batch give each sequence what they give it alone") {
  const std::vector<std::pair<std::vector<Shape>, Op>> ops = {
      {{{7, width, 4}, {7}},
       [](const Tensor& x, const Indices&, const auto& w) {
         return conv1d(x, w[0], w[1], {.stride = 3, .padding = 1, .dilation = 2});
       }},
      {{{width}, {width}},
       [](const Tensor& x, const Indices&, const auto& w) { return layer_norm(x, w[0], w[1]); }},
      {{{width}}, [](const Tensor& x, const Indices&, const auto& w) { return rms_norm(x, w[0]); }},
      {{{9, width}, {9}},
       [](const Tensor& x, const Indices&, const auto& w) { return gelu_linear(x, w[0], w[1]); }},
      {{}, [](const Tensor& x, const Indices&, const auto&) { return softmax(x); }},
      {{}, [](const Tensor& x, const Indices&, const auto&) { return log_softmax(x); }},
      {{}, [](const Tensor& x, const Indices& n, const auto&) { return masked_mean(x, n); }},
      {{}, [](const Tensor& x, const Indices& n, const auto&) { return masked_max(x, n); }},
      {{},
       [](const Tensor& x, const Indices&, const auto&) {
         return variance(x, {1, 2});
       }},
      {{}, [](const Tensor& x, const Indices&, const auto&) { return logsumexp(x, 1); }},
      {{}, [](const Tensor& x, const Indices&, const auto&) { return cumulative_sum(x, 1); }},
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    CAPTURE(i);
    check_batch(ops[i].first, ops[i].second);
  }
}

}  // namespace qkv::tests
