#include "core/ops.h"
#include "core/ops/elementwise.h"

namespace qkv {

using namespace detail;

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
