#include "core/kernels/rows.h"
#include "core/ops.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduction.h"

namespace qkv {
namespace {

/// log(sum(exp(x))) of n elements `step` apart; -inf when all are -inf or n is 0.
template <class T>
T log_sum_exp(const T* x, Index n, Index step) {
  T max = -std::numeric_limits<T>::infinity();
  for (Index i = 0; i < n; ++i) max = std::max(max, x[i * step]);
  if (std::isinf(max)) max = 0;  // the sum is 0, inf or NaN then
  if (step == 1)
    return max + std::log(kernels::sum_row<T>(n, [=](auto at) { return math::exp(at(x) - max); }));
  T sum = 0;
  for (Index i = 0; i < n; ++i) sum += math::exp(x[i * step] - max);
  return max + std::log(sum);
}

}  // namespace

Tensor logsumexp(const Tensor& x, const Axes& axes, bool keep) {
  const auto [operand, view, result] = reduction("logsumexp", x, axes, keep);
  const Tensor y = make(result, x.dtype(), [&, &from_x = operand, &columns = view]<class T>(T* to) {
    const T* from = numbers(from_x, to);
    for_each_column(columns, transcendental, [=](Index column, Index first) {
      to[column] = log_sum_exp(from + first, columns.length, columns.inner);
    });
  });
  return record(
      "logsumexp", y, {operand},
      [y, x = operand.detach(), view = view](const Tensor& dy, InputGradients& inputs) {
        // dx = dy softmax(x)
        inputs.add(0, make(x.shape(), x.dtype(), [&]<class T>(T* dx) {
                     const T *from = numbers(x, dx), *sums = numbers(y, dx),
                             *gradient = numbers(dy, dx);
                     for_each_column(view, transcendental, [=](Index column, Index first) {
                       const bool none = std::isinf(sums[column]) && sums[column] < 0;
                       for (Index l = 0; l < view.length; ++l) {
                         const Index i = first + l * view.inner;
                         dx[i] = none ? T{0} : gradient[column] * math::exp(from[i] - sums[column]);
                       }
                     });
                   }));
      });
}

Tensor log_softmax(const Tensor& x, int axis) {
  require(x.rank() >= 1, "[log_softmax] needs at least one axis, got a scalar");
  if (x.shape()[normal_axis("log_softmax", axis, x.shape())] == 0) return x;
  // A shift changes nothing but the rounding, which is finest near 0.
  const Tensor shifted = x - max(x.detach(), axis, true);
  return shifted - logsumexp(shifted, axis, true);
}

}  // namespace qkv
