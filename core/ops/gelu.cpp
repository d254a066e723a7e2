#include <cmath>
#include <numbers>

#include "core/kernels/rows.h"
#include "core/ops.h"
#include "core/ops/axes.h"
#include "core/ops/broadcast.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"

namespace qkv {
namespace {

using namespace detail;

constexpr double root = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;

template <class T>
using Element = std::remove_cvref_t<decltype(T{}[0])>;

/// GELU of each element x of a vector: x (1 + tanh(u)) / 2 = x logistic(2 u), where
/// u = root (x + cubic x^3). Beyond 20 it is x, below -20 it is 0, and powers might overflow.
template <class Vector>
struct Gelu {
  using T = Element<Vector>;

  [[gnu::always_inline]] explicit Gelu(const Vector& x)
      : x(x),
        near(math::limited(x, -far, far)),
        gate(math::logistic(static_cast<T>(2 * root) * near *
                            (1 + static_cast<T>(cubic) * near * near))) {}

  [[gnu::always_inline]] Vector value() const { return (x < near ? near : x) * gate; }
  [[gnu::always_inline]] Vector slope() const {
    const Vector twice =
        static_cast<T>(2 * root) * near * (1 + static_cast<T>(3 * cubic) * near * near);
    return gate * (1 + twice * (1 - gate));
  }

  static constexpr T far{9.9F};  ///< there 2 u is 85

  Vector x, near, gate;
};

/// `kernels::for_row` over n elements, on several threads.
template <class T, class F>
void for_each_element(Index n, F f) {
  parallel_for(partition(n, transcendental), [=](Index begin, Index end) {
    kernels::for_row<T>(end - begin, [=](auto at, auto put) {
      f([=](const T* x) { return at(x + begin); },
        [=](T* y, const kernels::Vector<T>& v) { put(y + begin, v); });
    });
  });
}

/// The cumulative distribution function of the normal distribution, Phi(x).
template <class T>
T normal_cdf(T x) {
  return std::erfc(-x * static_cast<T>(1 / std::numbers::sqrt2)) / 2;
}

}  // namespace

Tensor gelu(const Tensor& x) {
  const Tensor y = create(x.shape(), x.dtype(), [&]<class T>(T* to) {
    const T* from = elements(x, to);
    for_each_element<T>(x.size(), [=](auto at, auto put) { put(to, Gelu(at(from)).value()); });
  });
  return record("gelu", y, {x}, [x = x.detach()](const Tensor& dy, InputGradients& inputs) {
    inputs.add(0, create(x.shape(), x.dtype(), [&]<class T>(T* dx) {
                 const T *from = elements(x, dx), *gradient = elements(dy, dx);
                 for_each_element<T>(x.size(), [=](auto at, auto put) {
                   put(dx, at(gradient) * Gelu(at(from)).slope());
                 });
               }));
  });
}

Tensor gelu_exact(const Tensor& x) {
  return unary_from_input(
      "gelu_exact", x, 2 * transcendental, [](auto v) { return v * normal_cdf(v); },
      []<class T>(T dy, T v) {
        const T density =
            static_cast<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2) * math::exp(-v * v / 2);
        return dy * (normal_cdf(v) + v * density);
      });
}

Tensor gelu_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const auto forward = [&] {
    const NoGrad no_grad;
    return linear(gelu(x), weight, bias);
  };
  const auto backward = [x = x.detach(), w = weight.detach()](const Tensor& dy,
                                                              InputGradients& inputs) {
    const Index rows = axis_view(x.shape(), x.rank() - 1).outer;
    const Tensor flat_dy = dy.with_shape({rows, w.dim(0)});
    Tensor dx = product(flat_dy, false, w, false);  // with respect to gelu(x), then to x
    Tensor y = inputs.donated_or_new(x);
    dispatch(x.dtype(), [&]<class T>() {
      const T* from = x.data<T>().data();
      T *to = y.shared_mutable_data<T>().data(), *d = dx.mutable_data<T>().data();
      for_each_element<T>(x.size(), [=](auto at, auto put) {
        const Gelu again(at(from));
        put(to, again.value());
        put(d, at(d) * again.slope());
      });
    });
    inputs.add(0, dx.with_shape(x.shape()));
    const Tensor flat_y = y.with_shape({rows, w.dim(1)});
    inputs.add(1,
               [&](Tensor sum) { return product(flat_dy, true, flat_y, false, std::move(sum)); });
    inputs.add(2, [&] { return sum_to(flat_dy, {w.dim(0)}); });
  };
  return record("gelu_linear", forward(), {x, weight, bias}, backward);
}

}  // namespace qkv
