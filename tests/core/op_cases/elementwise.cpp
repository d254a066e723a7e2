#include "tests/core/op_cases.h"

namespace qkv::tests {
namespace {

Tensor number(double value, const Tensor& like) {
  return Tensor::scalar(value, like.dtype());
}

Tensor positive(const Tensor& x) {
  return greater(x, number(0, x));
}

/// Every third element is 1, the others are 0.
Tensor pattern(const Shape& shape, const Tensor& like) {
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = 1;
  return Tensor::from(values, shape, like.dtype());
}

}  // namespace

const std::vector<OpCase>& elementwise_cases() {
  static const std::vector<OpCase> cases = {
      {"add", "same shape", {{2, 3}, {2, 3}}, [](const In& x) { return add(x[0], x[1]); }},
      {"add", "both broadcast", {{2, 1, 3}, {4, 1}}, [](const In& x) { return x[0] + x[1]; }},
      {"add", "scalar", {{2, 3}, {}}, [](const In& x) { return x[0] + x[1]; }},
      {"add", "empty", {{0, 3}, {3}}, [](const In& x) { return x[0] + x[1]; }},
      {"subtract", "broadcast", {{2, 3}, {3}}, [](const In& x) { return x[0] - x[1]; }},
      {"multiply", "same shape", {{5}, {5}}, [](const In& x) { return x[0] * x[1]; }},
      {"multiply", "broadcast", {{3}, {2, 4, 3}}, [](const In& x) { return x[0] * x[1]; }},
      {"multiply", "with itself", {{5}}, [](const In& x) { return x[0] * x[0]; }},
      {"divide", "broadcast", {{2, 3}, {2, 1}}, [](const In& x) { return x[0] / x[1]; }, 0.5, 2},
      {"maximum", "broadcast", {{3, 4}, {4}}, [](const In& x) { return maximum(x[0], x[1]); }},
      {"maximum", "equal elements", {{5}}, [](const In& x) { return maximum(x[0], x[0]); }},
      {"maximum", "empty", {{0, 3}, {3}}, [](const In& x) { return maximum(x[0], x[1]); }},
      {"minimum",
       "both broadcast",
       {{3, 1}, {1, 4}},
       [](const In& x) { return minimum(x[0], x[1]); }},
      {"minimum", "equal elements", {{5}}, [](const In& x) { return minimum(x[0], x[0]); }},
      {"sin", "vector", {{37}}, [](const In& x) { return sin(x[0]); }},
      {"sin", "large", {{3, 7}}, [](const In& x) { return sin(x[0]); }, -10, 10},
      {"cos", "vector", {{37}}, [](const In& x) { return cos(x[0]); }},
      {"cos", "empty", {{3, 0}}, [](const In& x) { return cos(x[0]); }},
      {"erf", "vector", {{37}}, [](const In& x) { return erf(x[0]); }},
      {"erf", "wide", {{3, 7}}, [](const In& x) { return erf(x[0]); }, -6, 6},
      {"softplus", "vector", {{37}}, [](const In& x) { return softplus(x[0]); }},
      {"softplus", "wide", {{3, 7}}, [](const In& x) { return softplus(x[0]); }, -60, 60},
      {"affine", "operators", {{4}}, [](const In& x) { return 1 - 3 * (x[0] + 2) / 4; }},
      {"power", "cube", {{4}}, [](const In& x) { return power(x[0], 3); }},
      {"power", "fraction", {{4}}, [](const In& x) { return power(x[0], -0.5); }, 0.5, 2},
      {"exp", "vector", {{37}}, [](const In& x) { return exp(x[0]); }},
      {"log", "vector", {{37}}, [](const In& x) { return log(x[0]); }, 0.5, 2},
      {"tanh", "vector", {{37}}, [](const In& x) { return tanh(x[0]); }},
      {"relu", "vector", {{37}}, [](const In& x) { return relu(x[0]); }},
      {"gelu", "vector", {{37}}, [](const In& x) { return gelu(x[0]); }},
      {"add", "size 1", {{1}, {1}}, [](const In& x) { return x[0] + x[1]; }},
      {"divide", "empty", {{2, 0}, {2, 1}}, [](const In& x) { return x[0] / x[1]; }, 0.5, 2},
      {"power", "reciprocal", {{2, 3}}, [](const In& x) { return 2 / x[0]; }, 0.5, 2},
      {"sqrt", "matrix", {{5, 7}}, [](const In& x) { return sqrt(x[0]); }, 0.5, 2},
      {"sqrt", "size 1", {{1}}, [](const In& x) { return sqrt(x[0]); }, 0.5, 2},
      {"abs", "vector", {{37}}, [](const In& x) { return abs(x[0]); }},
      {"abs", "empty", {{0}}, [](const In& x) { return abs(x[0]); }},
      {"clamp", "both sides", {{37}}, [](const In& x) { return clamp(x[0], -0.5, 1); }},
      {"clamp", "matrix", {{3, 5}}, [](const In& x) { return clamp(x[0], -1, 1.5); }},
      {"exp", "empty", {{3, 0}}, [](const In& x) { return exp(x[0]); }},
      {"tanh", "scalar", {{}}, [](const In& x) { return tanh(x[0]); }},
      {"sigmoid", "vector", {{37}}, [](const In& x) { return sigmoid(x[0]); }},
      {"sigmoid", "large", {{2, 9}}, [](const In& x) { return sigmoid(x[0]); }, -30, 30},
      {"relu", "empty", {{0, 2}}, [](const In& x) { return relu(x[0]); }},
      {"gelu", "size 1", {{1, 1}}, [](const In& x) { return gelu(x[0]); }},
      {"gelu_exact", "vector", {{37}}, [](const In& x) { return gelu_exact(x[0]); }},
      {"gelu_exact", "wide", {{3, 7}}, [](const In& x) { return gelu_exact(x[0]); }, -6, 6},
      {"silu", "vector", {{37}}, [](const In& x) { return silu(x[0]); }},
      {"silu", "wide", {{3, 7}}, [](const In& x) { return silu(x[0]); }, -20, 20},
      {"equal",
       "signs",
       {{3, 4}, {4}},
       [](const In& x) { return where(equal(positive(x[0]), positive(x[1])), x[0], x[1]); }},
      {"not_equal",
       "signs",
       {{3, 4}, {3, 1}},
       [](const In& x) { return where(not_equal(positive(x[0]), positive(x[1])), x[0], x[1]); }},
      {"less",
       "smaller of two",
       {{3, 4}, {4}},
       [](const In& x) { return where(less(x[0], x[1]), x[0], x[1]); }},
      {"less_equal",
       "with a number",
       {{3, 4}},
       [](const In& x) { return where(less_equal(x[0], number(0.5, x[0])), x[0], 2 * x[0]); }},
      {"greater",
       "larger of two",
       {{3, 1}, {1, 4}},
       [](const In& x) { return where(greater(x[0], x[1]), x[0], x[1]); }},
      {"greater_equal",
       "with itself",
       {{5}},
       [](const In& x) { return where(greater_equal(x[0], x[0]), x[0], 2 * x[0]); }},
      {"where",
       "all broadcast",
       {{3, 1}, {2, 1, 4}},
       [](const In& x) {
         return where(pattern({3, 4}, x[0]), x[0], x[1]);
       }},
      {"where",
       "size 1",
       {{1}, {1}},
       [](const In& x) { return where(pattern({1}, x[0]), x[0], x[1]); }},
      {"where",
       "empty",
       {{0, 3}, {3}},
       [](const In& x) { return where(pattern({3}, x[0]), x[0], x[1]); }},
      {"masked_fill",
       "rows",
       {{2, 3, 4}},
       [](const In& x) {
         return masked_fill(x[0], pattern({3, 1}, x[0]), -7);
       }},
      {"masked_fill",
       "elements",
       {{3, 4}},
       [](const In& x) {
         return masked_fill(x[0], pattern({3, 4}, x[0]), 0.5);
       }},
  };
  return cases;
}

}  // namespace qkv::tests
