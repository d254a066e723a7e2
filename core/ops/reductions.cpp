#include "core/ops/reductions.h"

#include <algorithm>
#include <array>

#include "core/autograd.h"
#include "core/ops.h"
#include "core/ops/checks.h"
#include "core/ops/create.h"

namespace qkv {
namespace {

using namespace detail;

/// y[o, i] = scale sum over l of x[o, l, i]; each sum is taken in float64.
template <class T>
void sum_rows(const T* x, T* y, const AxisView& view, double scale) {
  constexpr Index most_columns = 64;
  const Index runs = (view.inner + most_columns - 1) / most_columns;
  parallel_for(partition(view.outer * runs, view.length * most_columns), [=](Index begin,
                                                                             Index end) {
    for (Index run = begin; run < end; ++run) {
      const Index first = run % runs * most_columns, o = run / runs;
      const Index count = std::min(most_columns, view.inner - first);
      std::array<double, most_columns> sums{};
      for (Index l = 0; l < view.length; ++l) {
        const T* row = x + (o * view.length + l) * view.inner + first;
        for (Index i = 0; i < count; ++i)
          sums[static_cast<std::size_t>(i)] += static_cast<double>(row[i]);
      }
      for (Index i = 0; i < count; ++i)
        y[o * view.inner + first + i] = static_cast<T>(scale * sums[static_cast<std::size_t>(i)]);
    }
  });
}

/// scale_of(number of terms) times the sum; the adjoint repeats dy.
template <class Scale>
Tensor scaled_sum(std::string_view op, const Tensor& x, const Axes& axes, bool keep,
                  Scale scale_of) {
  const auto [operand, view, result] = reduction_view(op, x, axes, keep);
  const double scale = scale_of(view.length);
  const Tensor y =
      create(result, x.dtype(), [&, &from = operand, &columns = view]<class T>(T* sums) {
        sum_rows(elements(from, sums), sums, columns, scale);
      });
  return record(
      op, y, {operand},
      [scale, view = view, shape = operand.shape()](const Tensor& dy, InputGradients& inputs) {
        inputs.add(0, create(shape, dy.dtype(), [&]<class T>(T* dx) {
                     const T* gradient = elements(dy, dx);
                     const Index rows = view.outer * view.length;
                     parallel_for(partition(rows, view.inner), [=](Index begin, Index end) {
                       for (Index row = begin; row < end;) {
                         const Index o = row / view.length;
                         const T* from = gradient + o * view.inner;
                         for (const Index last = std::min(end, (o + 1) * view.length); row < last;
                              ++row)
                           for (Index i = 0; i < view.inner; ++i)
                             dx[row * view.inner + i] = static_cast<T>(scale) * from[i];
                       }
                     });
                   }));
      });
}

double reciprocal(Index length) {
  return length ? 1.0 / static_cast<double>(length) : 0.0;
}

}  // namespace

ReductionView detail::reduction_view(std::string_view op, const Tensor& x, const Axes& axes,
                                     bool keep) {
  const Shape& shape = x.shape();
  const auto reduced = axes.in(op, shape);
  std::vector<Index> sizes;
  std::vector<int> order, last;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool gone = reduced[static_cast<std::size_t>(axis)];
    (gone ? last : order).push_back(axis);
    if (!gone || keep) sizes.push_back(gone ? 1 : shape[axis]);
  }
  const Shape result(sizes);
  if (last.empty()) return {x, {x.size(), 1, 1}, result};
  if (last.back() - last.front() + 1 == std::ssize(last))
    return {x, axis_view(shape, last.front(), last.back() + 1), result};
  const auto kept = static_cast<int>(order.size());
  order.insert(order.end(), last.begin(), last.end());
  const Tensor moved = permute(x, order);
  return {moved, axis_view(moved.shape(), kept, moved.rank()), result};
}

Tensor sum(const Tensor& x, const Axes& axes, bool keep) {
  return scaled_sum("sum", x, axes, keep, [](Index) { return 1.0; });
}

Tensor mean(const Tensor& x, const Axes& axes, bool keep) {
  return scaled_sum("mean", x, axes, keep, reciprocal);
}

Tensor variance(const Tensor& x, const Axes& axes, bool keep, Index correction) {
  const Index terms = reduction_view("variance", x, axes, keep).view.length;
  require<ValueError>(
      terms > correction,
      "[variance] shape {} has {} elements along the axes; correction {} needs more", x.shape(),
      terms, correction);
  const Tensor centered = x - mean(x, axes, true);
  return sum(centered * centered, axes, keep) * reciprocal(terms - correction);
}

Tensor masked_mean(const Tensor& x, const Indices& lengths) {
  require_lengths("masked_mean", x, lengths);
  const Index time = x.dim(1), width = x.dim(2);
  const Tensor y = create({x.dim(0), width}, x.dtype(), [&]<class T>(T* means) {
    for (Index b = 0; b < x.dim(0); ++b) {
      const Index length = lengths.data()[static_cast<std::size_t>(b)];
      sum_rows(elements(x, means) + b * time * width, means + b * width, {1, length, width},
               reciprocal(length));
    }
  });
  return record("masked_mean", y, {x},
                [=, shape = x.shape()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, create(shape, dy.dtype(), [&]<class T>(T* dx) {
                               for (Index b = 0; b < shape[0]; ++b) {
                                 const Index length = lengths.data()[static_cast<std::size_t>(b)];
                                 for (Index t = 0; t < time; ++t)
                                   for (Index d = 0; d < width; ++d)
                                     dx[(b * time + t) * width + d] =
                                         t < length ? static_cast<T>(reciprocal(length)) *
                                                          elements(dy, dx)[b * width + d]
                                                    : T{0};
                               }
                             }));
                });
}

Tensor cumulative_sum(const Tensor& x, int axis) {
  const AxisView view = axis_view(x.shape(), normal_axis("cumulative_sum", axis, x.shape()));
  const auto summed = [view](const Tensor& from, bool from_end) {
    return create(from.shape(), from.dtype(), [&]<class T>(T* to) {
      const T* terms = elements(from, to);
      for_each_column(view, 1, [=](Index, Index first) {
        const Index last = first + (view.length - 1) * view.inner;
        const Index step = from_end ? -view.inner : view.inner;
        double sum = 0;
        for (Index l = 0, i = from_end ? last : first; l < view.length; ++l, i += step) {
          sum += static_cast<double>(terms[i]);
          to[i] = static_cast<T>(sum);
        }
      });
    });
  };
  return record(
      "cumulative_sum", summed(x, false), {x},
      [summed](const Tensor& dy, InputGradients& inputs) { inputs.add(0, summed(dy, true)); });
}

}  // namespace qkv
