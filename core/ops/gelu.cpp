#include <numbers>

#include "core/kernels/math.h"
#include "core/ops.h"
#include "core/ops/elementwise.h"

namespace qkv {
namespace {

constexpr double root = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;

/// The share (1 + tanh(u)) / 2 = logistic(2 u) of x that gelu lets through, where
/// u = root (x + cubic x^3).
template <class T>
T gate(T x) {
  return 1 / (1 + math::exp(-2 * static_cast<T>(root) * (x + static_cast<T>(cubic) * x * x * x)));
}

/// The derivative of gelu at x, whose gate is `share`.
template <class T>
T slope(T x, T share) {
  const T inner = static_cast<T>(root) * (1 + static_cast<T>(3 * cubic) * x * x);
  return share * (1 + 2 * x * (1 - share) * inner);
}

}  // namespace

Tensor gelu(const Tensor& x) {
  return unary_from_input(
      "gelu", x, transcendental, []<class T>(T v) { return v * gate(v); },
      []<class T>(T dy, T v) { return dy * slope(v, gate(v)); });
}

Tensor gelu_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const auto forward = [&] {
    const NoGrad no_grad;
    return linear(gelu(x), weight, bias);
  };
  const auto backward = [x = x.detach(), w = weight.detach()](const Tensor& dy,
                                                              InputGradients& inputs) {
    const Index rows = x.size() / w.dim(1);
    const Tensor flat_dy = dy.with_shape({rows, w.dim(0)}), flat_x = x.with_shape({rows, w.dim(1)});
    Tensor dx = matmul(flat_dy, w);  // by gelu(x), then by x
    const Tensor y = make(flat_x.shape(), x.dtype(), [&]<class T>(T* to) {
      const T* from = numbers(x, to);
      T* d = dx.mutable_data<T>().data();
      parallel_for(cut(x.size(), transcendental), [=](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
          const T share = gate(from[i]);
          to[i] = from[i] * share;
          d[i] *= slope(from[i], share);
        }
      });
    });
    inputs.add(0, dx.with_shape(x.shape()));
    inputs.add(1, [&] { return matmul(flat_dy, y, Transpose::first); });
    inputs.add(2, [&] { return sum_to(flat_dy, {w.dim(0)}); });
  };
  return record("gelu_linear", forward(), {x, weight, bias}, backward);
}

}  // namespace qkv
