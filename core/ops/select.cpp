#include <cmath>

#include "core/ops.h"
#include "core/ops/elementwise.h"

namespace qkv {
namespace {

/// 1 where f(a, b) holds and 0 elsewhere, with broadcasting; a constant.
template <class F>
Tensor compare(std::string_view op, const Tensor& a, const Tensor& b, F f) {
  require_same_dtype(op, a, b);
  const Shape shape = broadcast(op, a.shape(), b.shape());
  return map(
      1, [f]<class T>(T x, T z) { return static_cast<T>(f(x, z)); }, broadcast_to(a, shape),
      broadcast_to(b, shape));
}

/// a where it goes before b or is NaN, else b. Where both are equal each gets half of the gradient.
template <class Before>
Tensor first_of(std::string_view op, const Tensor& a, const Tensor& b, Before before) {
  const auto share = [before]<class T>(T dy, T x, T other) {
    if (x == other) return dy / 2;
    return before(other, x) ? T{0} : dy;
  };
  return binary(
      op, a, b, [before](auto x, auto z) { return before(x, z) || std::isnan(x) ? x : z; },
      [share](auto dy, auto x, auto z) { return share(dy, x, z); },
      [share](auto dy, auto x, auto z) { return share(dy, z, x); });
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) {
  return first_of("maximum", a, b, std::greater());
}

Tensor minimum(const Tensor& a, const Tensor& b) {
  return first_of("minimum", a, b, std::less());
}

Tensor equal(const Tensor& a, const Tensor& b) {
  return compare("equal", a, b, [](auto x, auto z) { return x == z; });
}

Tensor less(const Tensor& a, const Tensor& b) {
  return compare("less", a, b, [](auto x, auto z) { return x < z; });
}

Tensor less_equal(const Tensor& a, const Tensor& b) {
  return compare("less_equal", a, b, [](auto x, auto z) { return x <= z; });
}

Tensor not_equal(const Tensor& a, const Tensor& b) {
  return compare("not_equal", a, b, [](auto x, auto z) { return x != z; });
}

Tensor greater(const Tensor& a, const Tensor& b) {
  return compare("greater", a, b, [](auto x, auto z) { return x > z; });
}

Tensor greater_equal(const Tensor& a, const Tensor& b) {
  return compare("greater_equal", a, b, [](auto x, auto z) { return x >= z; });
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  require_same_dtype("where", condition, a);
  require_same_dtype("where", a, b);
  const Shape shape =
      broadcast("where", condition.shape(), broadcast("where", a.shape(), b.shape()));
  const Tensor chosen = broadcast_to(condition, shape);
  const Tensor y = map(
      1, [](auto c, auto x, auto z) { return c != 0 ? x : z; }, chosen, broadcast_to(a, shape),
      broadcast_to(b, shape));
  return record(
      "where", y, {a, b},
      [=, to_a = a.shape(), to_b = b.shape()](const Tensor& dy, InputGradients& inputs) {
        inputs.add(0, [&] {
          return sum_to(map(
                            1, []<class T>(T d, T c) { return c != 0 ? d : T{0}; }, dy, chosen),
                        to_a);
        });
        inputs.add(1, [&] {
          return sum_to(map(
                            1, []<class T>(T d, T c) { return c != 0 ? T{0} : d; }, dy, chosen),
                        to_b);
        });
      });
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  require_same_dtype("masked_fill", mask, x);
  require(broadcast("masked_fill", x.shape(), mask.shape()) == x.shape(),
          "[masked_fill] mask {} does not broadcast to x {}", mask.shape(), x.shape());
  return where(mask, Tensor::scalar(value, x.dtype()), x);
}

}  // namespace qkv
