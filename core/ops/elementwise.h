#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/autograd.h"
#include "core/kernels/math.h"
#include "core/ops/broadcast.h"
#include "core/ops/checks.h"
#include "core/ops/create.h"
#include "core/parallel.h"

/// Ops that compute each element from the elements at its position.
namespace qkv::detail {

/// Estimated operations of one call of exp, tanh or pow.
inline constexpr Index transcendental = 16;

/// log(1 + exp(x)) without overflow.
template <class T>
T softplus_of(T x) {
  return std::max(x, T{0}) + std::log1p(math::exp(-std::fabs(x)));
}

/// y[i] = f(xs[i]...) for tensors of one shape, on several threads. `cost` estimates the operations
/// of one f.
template <class F, class... Tensors>
Tensor map(Index cost, F f, const Tensor& x, const Tensors&... others) {
  return create(x.shape(), x.dtype(), [&]<class T>(T* y) {
    const auto loop = [&](const auto*... inputs) {
      parallel_for(partition(x.size(), cost), [=](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) y[i] = f(inputs[i]...);
      });
    };
    loop(elements(x, y), elements(others, y)...);
  });
}

/// y = f(a, b) with broadcasting. `da(dy, a, b)` and `db(dy, a, b)` are the operands' gradients.
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

}  // namespace qkv::detail
