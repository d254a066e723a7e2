#include <array>
#include <limits>
#include <numeric>

#include "core/kernels/rows.h"
#include "core/ops.h"
#include "core/ops/elementwise.h"
#include "core/ops/reductions.h"

namespace qkv {
namespace {

using namespace detail;

/// x with two axes transposed.
Tensor swapped(const Tensor& x, int a, int b) {
  std::array<int, Shape::max_rank> axes{};
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<std::size_t>(a)], axes[static_cast<std::size_t>(b)]);
  return permute(x, std::span(axes).first(static_cast<std::size_t>(x.rank())));
}

/// The softmax normaliser of n elements `step` apart.
template <class T>
kernels::Normaliser<T> normaliser(const T* x, Index n, Index step) {
  T max = -std::numeric_limits<T>::infinity();
  for (Index i = 0; i < n; ++i) max = std::max(max, x[i * step]);
  if (std::isinf(max)) max = 0;  // the sum is 0, inf or NaN then
  if (step == 1)
    return {max, kernels::sum_row<T>(n, [=](auto at) { return math::exp(at(x) - max); })};
  T sum = 0;
  for (Index i = 0; i < n; ++i) sum += math::exp(x[i * step] - max);
  return {max, sum};
}

}  // namespace

Tensor softmax(const Tensor& x, int axis) {
  require(x.rank() >= 1, "[softmax] needs at least one axis, got a scalar");
  const int last = x.rank() - 1, normal = normal_axis("softmax", axis, x.shape());
  if (normal != last) return swapped(softmax(swapped(x, normal, last)), normal, last);
  const Index width = x.dim(-1), rows = width ? x.size() / width : 0;
  const Tensor y = create(x.shape(), x.dtype(), [&]<class T>(T* to) {
    const T* from = elements(x, to);
    parallel_for(partition(rows, width * kernels::softmax_cost), [=](Index begin, Index end) {
      for (Index row = begin; row < end; ++row)
        kernels::softmax_row(from + row * width, to + row * width, width, width);
    });
  });
  return record("softmax", y, {x}, [=](const Tensor& dy, InputGradients& inputs) {
    inputs.add(
        0, create(y.shape(), y.dtype(), [&]<class T>(T* dx) {
          const T *from_y = elements(y, dx), *from_dy = elements(dy, dx);
          parallel_for(partition(rows, width * kernels::softmax_cost), [=](Index begin, Index end) {
            for (Index row = begin * width; row < end * width; row += width)
              kernels::softmax_row_backward(from_y + row, from_dy + row, dx + row, width);
          });
        }));
  });
}

Tensor log_softmax(const Tensor& x, int axis) {
  require(x.rank() >= 1, "[log_softmax] needs at least one axis, got a scalar");
  if (x.shape()[normal_axis("log_softmax", axis, x.shape())] == 0) return x;
  // Softmax does not depend on a shift, and rounding errors are smallest near 0.
  const Tensor shifted = x - max(x.detach(), axis, true);
  return shifted - logsumexp(shifted, axis, true);
}

Tensor logsumexp(const Tensor& x, const Axes& axes, bool keep) {
  const auto [operand, view, result] = reduction_view("logsumexp", x, axes, keep);
  Tensor max = Tensor::empty(result, x.dtype()), sum = Tensor::empty(result, x.dtype());
  const Tensor y =
      create(result, x.dtype(), [&, &from_x = operand, &columns = view]<class T>(T* to) {
        const T* from = elements(from_x, to);
        T *maxima = max.mutable_data<T>().data(), *sums = sum.mutable_data<T>().data();
        for_each_column(columns, transcendental, [=](Index column, Index first) {
          const auto found = normaliser(from + first, columns.length, columns.inner);
          maxima[column] = found.max;
          sums[column] = found.sum;
          to[column] = found.max + std::log(found.sum);
        });
      });
  return record(
      "logsumexp", y, {operand},
      [max, sum, x = operand.detach(), view = view](const Tensor& dy, InputGradients& inputs) {
        // dx = dy softmax(x), not dy exp(x - y): where x is large, y has few digits after the
        // point.
        inputs.add(0, create(x.shape(), x.dtype(), [&]<class T>(T* dx) {
                     const T *from = elements(x, dx), *gradient = elements(dy, dx),
                             *maxima = elements(max, dx), *sums = elements(sum, dx);
                     for_each_column(view, transcendental, [=](Index column, Index first) {
                       const T factor = sums[column] == 0 ? T{0} : gradient[column] / sums[column];
                       for (Index l = 0; l < view.length; ++l) {
                         const Index i = first + l * view.inner;
                         dx[i] = factor * math::exp(from[i] - maxima[column]);
                       }
                     });
                   }));
      });
}

}  // namespace qkv
