#include <cmath>

#include "tests/core/reference/reference.h"

namespace qkv::tests::reference {
namespace {

Array add(const Arrays& x) {
  return x[0] + x[1];
}
Array multiply(const Arrays& x) {
  return x[0] * x[1];
}
Array divide(const Arrays& x) {
  return x[0] / x[1];
}
Array maximum(const Arrays& x) {
  return xt::maximum(x.front(), x.back());
}
Array minimum(const Arrays& x) {
  return xt::minimum(x.front(), x.back());
}
Array sin(const Arrays& x) {
  return xt::sin(x[0]);
}
Array cos(const Arrays& x) {
  return xt::cos(x[0]);
}
Array erf(const Arrays& x) {
  return xt::erf(x[0]);
}
Array exp(const Arrays& x) {
  return xt::exp(x[0]);
}
Array sqrt(const Arrays& x) {
  return xt::sqrt(x[0]);
}
Array abs(const Arrays& x) {
  return xt::abs(x[0]);
}
Array tanh(const Arrays& x) {
  return xt::tanh(x[0]);
}
Array relu(const Arrays& x) {
  return xt::maximum(x[0], 0.0);
}
Array gelu_exact(const Arrays& x) {
  return 0.5 * x[0] * (1 + xt::erf(x[0] / std::sqrt(2.0)));
}
Array silu(const Arrays& x) {
  return x[0] / (1 + xt::exp(-x[0]));
}

Array softplus_of(const Arrays& x) {
  return softplus(x[0]);
}
Array sigmoid_of(const Arrays& x) {
  return sigmoid(x[0]);
}
Array gelu_of(const Arrays& x) {
  return gelu(x[0]);
}

/// Every third element is 1, the others are 0.
Array pattern(const Sizes& sizes) {
  Array y = filled(sizes, 0);
  for (std::size_t i = 0; i < y.size(); i += 3) y.data()[i] = 1;
  return y;
}

/// The first input where the pattern of these sizes is 1, else the second.
Oracle where(const Sizes& sizes) {
  return [=](const Arrays& x) -> Array { return xt::where(pattern(sizes) > 0, x[0], x[1]); };
}
Oracle masked_fill(const Sizes& sizes, double value) {
  return [=](const Arrays& x) -> Array { return xt::where(pattern(sizes) > 0, value, x[0]); };
}

}  // namespace

const Oracles& elementwise_oracles() {
  static const Oracles all = {
      {"add: same shape", add},
      {"add: both broadcast", add},
      {"add: scalar", add},
      {"add: empty", add},
      {"add: size 1", add},
      {"subtract: broadcast", [](const Arrays& x) -> Array { return x[0] - x[1]; }},
      {"multiply: same shape", multiply},
      {"multiply: broadcast", multiply},
      {"multiply: with itself", [](const Arrays& x) -> Array { return xt::square(x[0]); }},
      {"divide: broadcast", divide},
      {"divide: empty", divide},
      {"maximum: broadcast", maximum},
      {"maximum: equal elements", maximum},
      {"maximum: empty", maximum},
      {"minimum: both broadcast", minimum},
      {"minimum: equal elements", minimum},
      {"sin: vector", sin},
      {"sin: large", sin},
      {"cos: vector", cos},
      {"cos: empty", cos},
      {"erf: vector", erf},
      {"erf: wide", erf},
      {"softplus: vector", softplus_of},
      {"softplus: wide", softplus_of},
      {"affine: operators", [](const Arrays& x) -> Array { return 1 - 3 * (x[0] + 2) / 4; }},
      {"power: cube", [](const Arrays& x) -> Array { return x[0] * x[0] * x[0]; }},
      {"power: fraction", [](const Arrays& x) -> Array { return 1 / xt::sqrt(x[0]); }},
      {"power: reciprocal", [](const Arrays& x) -> Array { return 2 / x[0]; }},
      {"exp: vector", exp},
      {"exp: empty", exp},
      {"log: vector", [](const Arrays& x) -> Array { return xt::log(x[0]); }},
      {"sqrt: matrix", sqrt},
      {"sqrt: size 1", sqrt},
      {"abs: vector", abs},
      {"abs: empty", abs},
      {"clamp: both sides", [](const Arrays& x) -> Array { return xt::clip(x[0], -0.5, 1.0); }},
      {"clamp: matrix", [](const Arrays& x) -> Array { return xt::clip(x[0], -1.0, 1.5); }},
      {"tanh: vector", tanh},
      {"tanh: scalar", tanh},
      {"sigmoid: vector", sigmoid_of},
      {"sigmoid: large", sigmoid_of},
      {"relu: vector", relu},
      {"relu: empty", relu},
      {"gelu: vector", gelu_of},
      {"gelu: size 1", gelu_of},
      {"gelu_exact: vector", gelu_exact},
      {"gelu_exact: wide", gelu_exact},
      {"silu: vector", silu},
      {"silu: wide", silu},
      {"equal: signs",
       [](const Arrays& x) -> Array {
         return xt::where(xt::equal(x[0] > 0, x[1] > 0), x[0], x[1]);
       }},
      {"not_equal: signs",
       [](const Arrays& x) -> Array {
         return xt::where(xt::not_equal(x[0] > 0, x[1] > 0), x[0], x[1]);
       }},
      {"less: smaller of two", minimum},
      {"less_equal: with a number",
       [](const Arrays& x) -> Array { return xt::where(x[0] <= 0.5, x[0], 2 * x[0]); }},
      {"greater: larger of two", maximum},
      {"greater_equal: with itself", [](const Arrays& x) { return x[0]; }},
      {"where: all broadcast", where({3, 4})},
      {"where: size 1", where({1})},
      {"where: empty", where({3})},
      {"masked_fill: rows", masked_fill({3, 1}, -7)},
      {"masked_fill: elements", masked_fill({3, 4}, 0.5)},
  };
  return all;
}

}  // namespace qkv::tests::reference
