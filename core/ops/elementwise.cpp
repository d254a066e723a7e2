#include <cmath>
#include <numbers>

#include "core/kernels/math.h"
#include "core/ops.h"
#include "core/ops/make.h"

namespace qkv {
namespace {

/// Estimated operations of one call of exp, tanh or pow.
constexpr Index transcendental = 16;

/// y = f(a, b) with broadcasting. `da(dy, a, b)` and `db(dy, a, b)` give the operands' gradients.
template <class F, class DA, class DB>
Tensor binary(std::string_view op, const Tensor& a, const Tensor& b, F f, DA da, DB db) {
  require_same_dtype(op, a, b);
  const Shape shape = broadcast(op, a.shape(), b.shape());
  const Tensor wide_a = broadcast_to(a, shape), wide_b = broadcast_to(b, shape);
  return record(op, map(1, f, wide_a, wide_b), {a, b},
                [=, to_a = a.shape(), to_b = b.shape()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, [&] { return sum_to(map(1, da, dy, wide_a, wide_b), to_a); });
                  inputs.add(1, [&] { return sum_to(map(1, db, dy, wide_a, wide_b), to_b); });
                });
}

/// y = f(x), differentiated by `dx(dy, x)`.
template <class F, class DX>
Tensor unary_from_input(std::string_view op, const Tensor& x, Index cost, F f, DX dx) {
  return record(op, map(cost, f, x), {x},
                [=, x = x.detach()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, map(cost, dx, dy, x));
                });
}

/// y = f(x), differentiated by `dx(dy, y)`.
template <class F, class DX>
Tensor unary_from_output(std::string_view op, const Tensor& x, Index cost, F f, DX dx) {
  const Tensor y = map(cost, f, x);
  return record(op, y, {x}, [=](const Tensor& dy, InputGradients& inputs) {
    inputs.add(0, map(1, dx, dy, y));
  });
}

constexpr double gelu_root = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, gelu_cubic = 0.044715;

/// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u))
template <class T>
T gelu_gate(T x) {
  const T u = static_cast<T>(gelu_root) * (x + static_cast<T>(gelu_cubic) * x * x * x);
  return 1 / (1 + math::exp(-2 * u));
}

template <class T>
T gelu_inner_derivative(T x) {
  return static_cast<T>(gelu_root) * (1 + static_cast<T>(3 * gelu_cubic) * x * x);
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  require_same_dtype("add", a, b);
  const Shape shape = broadcast("add", a.shape(), b.shape());
  const Tensor y = map(
      1, [](auto x, auto z) { return x + z; }, broadcast_to(a, shape), broadcast_to(b, shape));
  return record("add", y, {a, b},
                [to_a = a.shape(), to_b = b.shape()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, [&] { return sum_to(dy, to_a); });
                  inputs.add(1, [&] { return sum_to(dy, to_b); });
                });
}

Tensor subtract(const Tensor& a, const Tensor& b) {
  return add(a, affine(b, -1, 0));
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  return binary(
      "multiply", a, b, [](auto x, auto z) { return x * z; },
      [](auto dy, auto, auto z) { return dy * z; }, [](auto dy, auto x, auto) { return dy * x; });
}

Tensor divide(const Tensor& a, const Tensor& b) {
  return binary(
      "divide", a, b, [](auto x, auto z) { return x / z; },
      [](auto dy, auto, auto z) { return dy / z; },
      [](auto dy, auto x, auto z) { return -dy * x / (z * z); });
}

Tensor affine(const Tensor& x, double scale, double shift) {
  const Tensor y = map(
      1, [=]<class T>(T v) { return static_cast<T>(scale) * v + static_cast<T>(shift); }, x);
  return record("affine", y, {x}, [scale](const Tensor& dy, InputGradients& inputs) {
    inputs.add(0, map(
                      1, [=]<class T>(T v) { return static_cast<T>(scale) * v; }, dy));
  });
}

Tensor power(const Tensor& x, double exponent) {
  return unary_from_input(
      "power", x, transcendental,
      [=]<class T>(T v) { return std::pow(v, static_cast<T>(exponent)); },
      [=]<class T>(T dy, T v) {
        return dy * static_cast<T>(exponent) * std::pow(v, static_cast<T>(exponent - 1));
      });
}

Tensor exp(const Tensor& x) {
  return unary_from_output(
      "exp", x, transcendental, [](auto v) { return math::exp(v); },
      [](auto dy, auto y) { return dy * y; });
}

Tensor log(const Tensor& x) {
  return unary_from_input(
      "log", x, transcendental, [](auto v) { return std::log(v); },
      [](auto dy, auto v) { return dy / v; });
}

Tensor tanh(const Tensor& x) {
  return unary_from_output(
      "tanh", x, transcendental, [](auto v) { return math::tanh(v); },
      [](auto dy, auto y) { return dy * (1 - y * y); });
}

Tensor relu(const Tensor& x) {
  return unary_from_output(
      "relu", x, 1, []<class T>(T v) { return v > 0 ? v : T{0}; },
      []<class T>(T dy, T y) { return y > 0 ? dy : T{0}; });
}

// gelu(x) = x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3)
Tensor gelu(const Tensor& x) {
  return unary_from_input(
      "gelu", x, transcendental, []<class T>(T v) { return v * gelu_gate(v); },
      []<class T>(T dy, T v) {
        const T gate = gelu_gate(v);
        return dy * gate * (1 + 2 * v * (1 - gate) * gelu_inner_derivative(v));
      });
}

}  // namespace qkv
