#include "core/ops.h"
#include "core/ops/elementwise.h"

namespace qkv {
namespace {

using namespace detail;

/// 1 where f(a, b) holds and 0 elsewhere, with broadcasting; a constant.
template <class F>
Tensor compare(std::string_view op, const Tensor& a, const Tensor& b, F f) {
  require_same_dtype(op, a, b);
  const Shape shape = broadcast(op, a.shape(), b.shape());
  return map(
      1, [f]<class T>(T x, T z) { return static_cast<T>(f(x, z)); }, broadcast_to(a, shape),
      broadcast_to(b, shape));
}

}  // namespace

Tensor equal(const Tensor& a, const Tensor& b) {
  return compare("equal", a, b, [](auto x, auto z) { return x == z; });
}

Tensor not_equal(const Tensor& a, const Tensor& b) {
  return compare("not_equal", a, b, [](auto x, auto z) { return x != z; });
}

Tensor less(const Tensor& a, const Tensor& b) {
  return compare("less", a, b, [](auto x, auto z) { return x < z; });
}

Tensor less_equal(const Tensor& a, const Tensor& b) {
  return compare("less_equal", a, b, [](auto x, auto z) { return x <= z; });
}

Tensor greater(const Tensor& a, const Tensor& b) {
  return compare("greater", a, b, [](auto x, auto z) { return x > z; });
}

Tensor greater_equal(const Tensor& a, const Tensor& b) {
  return compare("greater_equal", a, b, [](auto x, auto z) { return x >= z; });
}

}  // namespace qkv
