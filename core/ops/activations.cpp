#include "core/kernels/math.h"
#include "core/ops.h"
#include "core/ops/elementwise.h"

namespace qkv {

using namespace detail;

Tensor tanh(const Tensor& x) {
  return unary_from_output(
      "tanh", x, transcendental, [](auto v) { return math::tanh(v); },
      [](auto dy, auto y) { return dy * (1 - y * y); });
}

Tensor sigmoid(const Tensor& x) {
  return unary_from_output(
      "sigmoid", x, transcendental, [](auto v) { return math::logistic(v); },
      [](auto dy, auto y) { return dy * y * (1 - y); });
}

Tensor softplus(const Tensor& x) {
  return unary_from_input(
      "softplus", x, 2 * transcendental, [](auto v) { return softplus_of(v); },
      [](auto dy, auto v) { return dy * math::logistic(v); });
}

Tensor relu(const Tensor& x) {
  return unary_from_output(
      "relu", x, 1, []<class T>(T v) { return v < 0 ? T{0} : v; },  // keeps NaN
      []<class T>(T dy, T y) { return y <= 0 ? T{0} : dy; });
}

Tensor silu(const Tensor& x) {
  return unary_from_input(
      "silu", x, transcendental, [](auto v) { return v * math::logistic(v); },
      [](auto dy, auto v) {
        const auto s = math::logistic(v);
        return dy * s * (1 + v * (1 - s));
      });
}

}  // namespace qkv
