#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "core/ops.h"
#include "core/ops/elementwise.h"

namespace qkv {
namespace {

using namespace detail;

Tensor negated(const Tensor& x) {
  return map(1, std::negate(), x);
}

Tensor recorded_sum(Tensor y, const Tensor& a, const Tensor& b) {
  return record("add", std::move(y), {a, b},
                [to_a = a.shape(), to_b = b.shape()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, [&] { return sum_to(dy, to_a); });
                  inputs.add(1, [&] { return sum_to(dy, to_b); });
                });
}

/// a where before(a, b) or a is NaN, else b. Where both are equal each gets half of the gradient.
template <class Before>
Tensor first_of(std::string_view op, const Tensor& a, const Tensor& b, Before before) {
  const auto gradient = [before]<class T>(T dy, T x, T other) {
    if (x == other) return dy / 2;
    return before(other, x) ? T{0} : dy;
  };
  return binary(
      op, a, b, [before](auto x, auto z) { return before(x, z) || std::isnan(x) ? x : z; },
      [gradient](auto dy, auto x, auto z) { return gradient(dy, x, z); },
      [gradient](auto dy, auto x, auto z) { return gradient(dy, z, x); });
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  require_same_dtype("add", a, b);
  const Shape shape = broadcast("add", a.shape(), b.shape());
  return recorded_sum(map(1, std::plus(), broadcast_to(a, shape), broadcast_to(b, shape)), a, b);
}

Tensor add(const Tensor& a, Tensor&& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype() || !b.unshared() ||
      Execution::current().detects_anomaly)
    return add(a, std::as_const(b));
  Tensor y = b.detach();
  dispatch(y.dtype(), [&]<class T>() {
    auto* sum = y.shared_mutable_data<T>().data();
    const auto* term = elements(a, sum);
    parallel_for(partition(y.size(), 1), [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) sum[i] = term[i] + sum[i];
    });
  });
  return recorded_sum(std::move(y), a, b);
}

Tensor subtract(const Tensor& a, const Tensor& b) {
  require_same_dtype("subtract", a, b);
  const Shape shape = broadcast("subtract", a.shape(), b.shape());
  return record("subtract", map(1, std::minus(), broadcast_to(a, shape), broadcast_to(b, shape)),
                {a, b},
                [to_a = a.shape(), to_b = b.shape()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, [&] { return sum_to(dy, to_a); });
                  inputs.add(1, [&] { return negated(sum_to(dy, to_b)); });
                });
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
      // z^2 may overflow or underflow where the quotients do not.
      [](auto dy, auto x, auto z) { return -dy * ((x / z) / z); });
}

Tensor divide(const Tensor& x, double divisor) {
  const auto quotient = [divisor]<class T>(T v) { return v / static_cast<T>(divisor); };
  return record("divide", map(1, quotient, x), {x},
                [quotient](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, map(1, quotient, dy));
                });
}

Tensor divide(double dividend, const Tensor& x) {
  return unary_from_input(
      "divide", x, 1, [=]<class T>(T v) { return static_cast<T>(dividend) / v; },
      [=]<class T>(T dy, T v) { return -dy * ((static_cast<T>(dividend) / v) / v); });
}

Tensor maximum(const Tensor& a, const Tensor& b) {
  return first_of("maximum", a, b, std::greater());
}

Tensor minimum(const Tensor& a, const Tensor& b) {
  return first_of("minimum", a, b, std::less());
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
        if (exponent == 0) return T{0};  // 0 v^-1 is NaN at v = 0
        return dy * (static_cast<T>(exponent) * std::pow(v, static_cast<T>(exponent - 1)));
      });
}

Tensor sqrt(const Tensor& x) {
  return unary_from_output(
      "sqrt", x, 4, [](auto v) { return std::sqrt(v); },
      [](auto dy, auto y) { return dy / (2 * y); });
}

Tensor abs(const Tensor& x) {
  return unary_from_input(
      "abs", x, 1, [](auto v) { return std::fabs(v); },
      []<class T>(T dy, T v) { return v > 0   ? dy
                                      : v < 0 ? -dy
                                              : T{0}; });
}

Tensor clamp(const Tensor& x, double low, double high) {
  require<ValueError>(low <= high, "[clamp] the lower bound {} exceeds the upper bound {}", low,
                      high);
  return unary_from_input(
      "clamp", x, 1,
      [=]<class T>(T v) {
        const T least = static_cast<T>(low), most = static_cast<T>(high);
        return v < least ? least : v > most ? most : v;
      },
      [=]<class T>(T dy, T v) {
        return v >= static_cast<T>(low) && v <= static_cast<T>(high) ? dy : T{0};
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

Tensor sin(const Tensor& x) {
  return unary_from_input(
      "sin", x, transcendental, [](auto v) { return std::sin(v); },
      [](auto dy, auto v) { return dy * std::cos(v); });
}

Tensor cos(const Tensor& x) {
  return unary_from_input(
      "cos", x, transcendental, [](auto v) { return std::cos(v); },
      [](auto dy, auto v) { return -dy * std::sin(v); });
}

Tensor erf(const Tensor& x) {
  return unary_from_input(
      "erf", x, 2 * transcendental, [](auto v) { return std::erf(v); },
      []<class T>(T dy, T v) {
        return dy * static_cast<T>(2 * std::numbers::inv_sqrtpi) * math::exp(-v * v);
      });
}

}  // namespace qkv
