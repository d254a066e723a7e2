#include <cmath>

#include "tests/core/op_cases.h"

namespace qkv::tests {
namespace {

const Random random(7, Purpose::testing);
const AttentionMask no_mask;
const AttentionMask padding{Indices({3, 1}, {2}), false};
const AttentionMask causal{{}, true};
const AttentionMask both{Indices({4, 2}, {2}), true};

AttentionMask with_bias(AttentionMask mask, const Tensor& bias) {
  mask.bias = bias;
  return mask;
}

/// -inf for every third element, all of the first row among them, else 0.
Tensor hiding(const Shape& shape, DType dtype) {
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i % 3 == 0 || i < static_cast<std::size_t>(shape.dim(-1))) values[i] = -INFINITY;
  return Tensor::from(values, shape, dtype);
}

Tensor self(const In& x, const AttentionMask& mask, const AttentionOptions& options) {
  return attention(x[0], x[1], x[2], mask, options, random);
}

}  // namespace

const std::vector<OpCase>& layer_cases() {
  static const std::vector<OpCase> cases = {
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
      {"gelu_linear",
       "with bias",
       {{2, 3, 4}, {5, 4}, {5}},
       [](const In& x) { return gelu_linear(x[0], x[1], x[2]); }},
      {"gelu_linear",
       "without bias",
       {{3, 4}, {5, 4}},
       [](const In& x) { return gelu_linear(x[0], x[1]); }},
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
       "longer than a vector, causal and padding",
       {{2, 21, 4}, {2, 21, 4}, {2, 21, 4}},
       [](const In& x) {
         return self(x, {Indices({21, 10}, {2}), true}, {.heads = 2, .scale = 0.7});
       }},
      {"attention",
       "fewer queries than keys, causal and dropout",
       {{1, 19, 2}, {1, 26, 2}, {1, 26, 2}},
       [](const In& x) { return self(x, causal, {.heads = 1, .scale = 0.9, .dropout = 0.3}); }},
      {"attention",
       "more queries than keys, causal",
       {{2, 5, 6}, {2, 3, 6}, {2, 3, 6}},
       [](const In& x) { return self(x, causal, {.heads = 2, .scale = 0.6}); }},
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
      {"attention",
       "a bias of each score",
       {{2, 3, 6}, {2, 5, 6}, {2, 5, 6}, {2, 2, 3, 5}},
       [](const In& x) {
         return self(x, {.key_lengths = {}, .bias = x[3]}, {.heads = 2, .scale = 0.6});
       }},
      {"attention",
       "a bias of each head, causal, padding and dropout",
       {{2, 4, 6}, {2, 4, 6}, {2, 4, 6}, {2, 4, 4}},
       [](const In& x) {
         return self(x, with_bias(both, x[3]), {.heads = 2, .scale = 0.7, .dropout = 0.4});
       }},
      {"attention",
       "a bias of each key of a sequence, longer than a vector",
       {{2, 21, 4}, {2, 19, 4}, {2, 19, 4}, {2, 1, 1, 19}},
       [](const In& x) { return self(x, with_bias(causal, x[3]), {.heads = 2, .scale = 0.7}); }},
      {"attention",
       "a bias that hides, rows without any key among them",
       {{2, 5, 4}, {2, 7, 4}, {2, 7, 4}},
       [](const In& x) {
         return self(x, {.key_lengths = {}, .bias = hiding({5, 7}, x[0].dtype())},
                     {.heads = 2, .scale = 0.7});
       }},
      {"embedding",
       "padding that counts for nothing",
       {{5, 3}},
       [](const In& x) {
         const Tensor counts = Tensor::from({0, 1, 0, 1}, {2, 2, 1}, x[0].dtype());
         return embedding(x[0], Indices({4, 0, 4, 1}, {2, 2}), 4) * counts;
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
       [](const In& x) { return rotary(x[0], 2, rotary_cos_sin(3, 4, 5, x[0].dtype())); }},
      {"dropout", "half", {{4, 5}}, [](const In& x) { return dropout(x[0], 0.5, random); }},
      {"matmul", "two vectors", {{4}, {4}}, [](const In& x) { return matmul(x[0], x[1]); }},
      {"matmul",
       "a vector and matrices",
       {{4}, {2, 4, 5}},
       [](const In& x) { return matmul(x[0], x[1]); }},
      {"matmul",
       "matrices and a vector",
       {{2, 3, 4}, {4}},
       [](const In& x) { return matmul(x[0], x[1]); }},
      {"matmul",
       "a vector and a transposed matrix",
       {{4}, {5, 4}},
       [](const In& x) { return matmul(x[0], x[1], Transpose::second); }},
      {"matmul",
       "leading axes broadcast",
       {{2, 1, 3, 4}, {5, 4, 2}},
       [](const In& x) { return matmul(x[0], x[1]); }},
      {"matmul",
       "both broadcast, second transposed",
       {{1, 3, 4}, {2, 5, 4}},
       [](const In& x) { return matmul(x[0], x[1], Transpose::second); }},
      {"matmul",
       "one matrix, first transposed",
       {{4, 3}, {2, 4, 5}},
       [](const In& x) { return matmul(x[0], x[1], Transpose::first); }},
      {"matmul",
       "empty batch",
       {{0, 3, 4}, {4, 5}},
       [](const In& x) { return matmul(x[0], x[1]); }},
      {"log_softmax", "rows", {{2, 3, 21}}, [](const In& x) { return log_softmax(x[0]); }},
      {"softmax", "first axis", {{21, 3}}, [](const In& x) { return softmax(x[0], 0); }},
      {"softmax", "middle axis", {{2, 5, 3, 4}}, [](const In& x) { return softmax(x[0], -3); }},
      {"log_softmax", "first axis", {{21, 3}}, [](const In& x) { return log_softmax(x[0], 0); }},
      {"log_softmax", "middle axis", {{2, 5, 3}}, [](const In& x) { return log_softmax(x[0], 1); }},
      {"log_softmax", "large", {{3, 19}}, [](const In& x) { return log_softmax(x[0]); }, -90, 90},
      {"log_softmax", "rows of one", {{3, 1}}, [](const In& x) { return log_softmax(x[0]); }},
      {"embedding",
       "one id",
       {{5, 1}},
       [](const In& x) { return embedding(x[0], Indices({3}, {1})); }},
      {"layer_norm",
       "one row",
       {{1, 5}, {5}, {5}},
       [](const In& x) { return layer_norm(x[0], x[1], x[2]); }},
      {"rms_norm", "rows", {{2, 3, 21}, {21}}, [](const In& x) { return rms_norm(x[0], x[1]); }},
      {"rms_norm", "width 1", {{3, 1}, {1}}, [](const In& x) { return rms_norm(x[0], x[1], 0.1); }},
      {"conv1d",
       "with bias",
       {{2, 7, 3}, {4, 3, 2}, {4}},
       [](const In& x) { return conv1d(x[0], x[1], x[2]); }},
      {"conv1d",
       "stride, padding and dilation",
       {{2, 7, 3}, {4, 3, 3}},
       [](const In& x) {
         return conv1d(x[0], x[1], {}, {.stride = 2, .padding = 2, .dilation = 2});
       }},
      {"conv1d",
       "a stride that does not divide",
       {{2, 8, 3}, {4, 3, 3}, {4}},
       [](const In& x) { return conv1d(x[0], x[1], x[2], {.stride = 2}); }},
      {"conv1d",
       "a kernel as long as the sequence",
       {{3, 4, 2}, {5, 2, 4}, {5}},
       [](const In& x) { return conv1d(x[0], x[1], x[2]); }},
      {"conv1d",
       "size 1",
       {{1, 1, 1}, {1, 1, 1}, {1}},
       [](const In& x) { return conv1d(x[0], x[1], x[2]); }},
  };
  return cases;
}

}  // namespace qkv::tests
