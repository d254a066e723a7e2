#include "tests/core/op_cases.h"

namespace qkv::tests {
namespace {

const Random random(7, Purpose::testing);
const AttentionMask no_mask;
const AttentionMask padding{Indices({3, 1}, {2}), false};
const AttentionMask causal{{}, true};
const AttentionMask both{Indices({4, 2}, {2}), true};

Tensor self(const In& x, const AttentionMask& mask, const AttentionOptions& options) {
  return attention(x[0], x[1], x[2], mask, options, random);
}

// All sizes of a case differ, so that mixing up two axes cannot go unnoticed.
const std::vector<OpCase> cases = {
    {"add", "same shape", {{2, 3}, {2, 3}}, [](const In& x) { return add(x[0], x[1]); }},
    {"add", "both broadcast", {{2, 1, 3}, {4, 1}}, [](const In& x) { return x[0] + x[1]; }},
    {"add", "scalar", {{2, 3}, {}}, [](const In& x) { return x[0] + x[1]; }},
    {"add", "empty", {{0, 3}, {3}}, [](const In& x) { return x[0] + x[1]; }},
    {"subtract", "broadcast", {{2, 3}, {3}}, [](const In& x) { return x[0] - x[1]; }},
    {"multiply", "same shape", {{5}, {5}}, [](const In& x) { return x[0] * x[1]; }},
    {"multiply", "broadcast", {{3}, {2, 4, 3}}, [](const In& x) { return x[0] * x[1]; }},
    {"multiply", "with itself", {{5}}, [](const In& x) { return x[0] * x[0]; }},
    {"divide", "broadcast", {{2, 3}, {2, 1}}, [](const In& x) { return x[0] / x[1]; }, 0.5, 2},
    {"affine", "operators", {{4}}, [](const In& x) { return 1 - 3 * (x[0] + 2) / 4; }},
    {"power", "cube", {{4}}, [](const In& x) { return power(x[0], 3); }},
    {"power", "fraction", {{4}}, [](const In& x) { return power(x[0], -0.5); }, 0.5, 2},
    {"exp", "vector", {{37}}, [](const In& x) { return exp(x[0]); }},
    {"log", "vector", {{37}}, [](const In& x) { return log(x[0]); }, 0.5, 2},
    {"tanh", "vector", {{37}}, [](const In& x) { return tanh(x[0]); }},
    {"relu", "vector", {{37}}, [](const In& x) { return relu(x[0]); }},
    {"gelu", "vector", {{37}}, [](const In& x) { return gelu(x[0]); }},
    {"reshape",
     "inferred size",
     {{2, 6}},
     [](const In& x) {
       return reshape(x[0], {3, -1});
     }},
    {"permute",
     "cycle",
     {{2, 3, 4}},
     [](const In& x) {
       return permute(x[0], {1, 2, 0});
     }},
    {"permute",
     "heads",
     {{2, 3, 4, 5}},
     [](const In& x) {
       return permute(x[0], {0, 2, 1, -1});
     }},
    {"slice", "middle axis", {{2, 5, 3}}, [](const In& x) { return slice(x[0], 1, 1, 4); }},
    {"slice", "nothing", {{2, 5}}, [](const In& x) { return slice(x[0], -1, 2, 2); }},
    {"concatenate",
     "middle axis",
     {{2, 1, 3}, {2, 4, 3}},
     [](const In& x) { return concatenate(x, 1); }},
    {"concatenate",
     "one twice",
     {{2, 3}},
     [](const In& x) {
       return concatenate({x[0], x[0]}, 0);
     }},
    {"select_rows",
     "one a sequence",
     {{3, 4, 2}},
     [](const In& x) {
       return select_rows(x[0], Indices({3, 0, 3}, {3}));
     }},
    {"sum", "all", {{2, 3}}, [](const In& x) { return sum(x[0]); }},
    {"sum", "first axis", {{2, 3, 4}}, [](const In& x) { return sum(x[0], 0); }},
    {"sum", "last axis kept", {{2, 3, 4}}, [](const In& x) { return sum(x[0], -1, true); }},
    {"mean", "all", {{2, 3}}, [](const In& x) { return mean(x[0]); }},
    {"mean", "middle axis", {{2, 3, 4}}, [](const In& x) { return mean(x[0], 1); }},
    {"masked_mean",
     "one empty",
     {{3, 4, 2}},
     [](const In& x) {
       return masked_mean(x[0], Indices({4, 0, 2}, {3}));
     }},
    {"matmul", "matrices", {{3, 4}, {4, 5}}, [](const In& x) { return matmul(x[0], x[1]); }},
    {"matmul", "batches", {{2, 3, 4}, {2, 4, 5}}, [](const In& x) { return matmul(x[0], x[1]); }},
    {"matmul",
     "one matrix for a batch",
     {{2, 3, 4}, {4, 5}},
     [](const In& x) { return matmul(x[0], x[1]); }},
    {"matmul",
     "first transposed",
     {{2, 4, 3}, {2, 4, 5}},
     [](const In& x) { return matmul(x[0], x[1], Transpose::first); }},
    {"matmul",
     "second transposed",
     {{2, 3, 4}, {2, 5, 4}},
     [](const In& x) { return matmul(x[0], x[1], Transpose::second); }},
    {"matmul", "size 1", {{1, 1}, {1, 1}}, [](const In& x) { return matmul(x[0], x[1]); }},
    {"linear",
     "with bias",
     {{2, 3, 4}, {5, 4}, {5}},
     [](const In& x) { return linear(x[0], x[1], x[2]); }},
    {"linear", "without bias", {{3, 4}, {5, 4}}, [](const In& x) { return linear(x[0], x[1]); }},
    {"softmax", "rows", {{2, 3, 21}}, [](const In& x) { return softmax(x[0]); }},
    {"softmax", "rows of one", {{3, 1}}, [](const In& x) { return softmax(x[0]); }},
    {"attention",
     "one head",
     {{2, 3, 4}, {2, 5, 4}, {2, 5, 4}},
     [](const In& x) { return self(x, no_mask, {.heads = 1, .scale = 0.5}); }},
    {"attention",
     "two heads, padding",
     {{2, 3, 6}, {2, 5, 6}, {2, 5, 6}},
     [](const In& x) { return self(x, padding, {.heads = 2, .scale = 0.6}); }},
    {"attention",
     "causal",
     {{2, 4, 6}, {2, 4, 6}, {2, 4, 6}},
     [](const In& x) { return self(x, causal, {.heads = 3, .scale = 0.7}); }},
    {"attention",
     "causal, padding and dropout",
     {{2, 4, 6}, {2, 4, 6}, {2, 4, 6}},
     [](const In& x) { return self(x, both, {.heads = 2, .scale = 0.7, .dropout = 0.4}); }},
    {"attention",
     "parameter-free",
     {{2, 4, 6}},
     [](const In& x) {
       return self({x[0], x[0], x[0]}, padding, {.heads = 1, .scale = 1});
     }},
    {"attention",
     "uniform",
     {{2, 4, 6}},
     [](const In& x) {
       return self({x[0], x[0], x[0]}, padding, {.heads = 1, .scale = 0});
     }},
    {"embedding",
     "an id twice",
     {{5, 3}},
     [](const In& x) {
       return embedding(x[0], Indices({4, 0, 4, 1}, {2, 2}));
     }},
    {"layer_norm",
     "rows",
     {{2, 3, 21}, {21}, {21}},
     [](const In& x) { return layer_norm(x[0], x[1], x[2]); }},
    {"layer_norm",
     "without bias",
     {{3, 5}, {5}},
     [](const In& x) { return layer_norm(x[0], x[1]); }},
    {"rotary",
     "two heads",
     {{2, 3, 8}},
     [](const In& x) { return rotary(x[0], 2, rotary_turns(3, 4, 5, x[0].dtype())); }},
    {"dropout", "half", {{4, 5}}, [](const In& x) { return dropout(x[0], 0.5, random); }},
    {"cross_entropy",
     "one ignored",
     {{4, 5}},
     [](const In& x) {
       return cross_entropy(x[0], Indices({2, 0, -1, 4}, {4}));
     }},
    {"cross_entropy",
     "sequences",
     {{2, 3, 4}},
     [](const In& x) {
       return cross_entropy(x[0], Indices({2, 0, 3, 1, 1, -1}, {2, 3}));
     }},
};

}  // namespace

const std::vector<OpCase>& op_cases() {
  return cases;
}

In inputs_of(const OpCase& sample, DType dtype) {
  In inputs;
  Random streams(3, Purpose::testing);
  for (const Shape& shape : sample.shapes) {
    const Random stream = streams.next();
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = sample.low + (sample.high - sample.low) * stream.uniform(i);
    inputs.push_back(Tensor::from(values, shape, dtype));
  }
  return inputs;
}

}  // namespace qkv::tests
