#include "core/ops.h"
#include "core/ops/make.h"

namespace qkv {
namespace {

/// The shape after reducing `axis`.
Shape reduced(const Shape& shape, int axis, bool keep) {
  std::vector<Index> sizes(shape.begin(), shape.end());
  if (keep)
    sizes[static_cast<std::size_t>(axis)] = 1;
  else
    sizes.erase(sizes.begin() + axis);
  return Shape(sizes);
}

/// y[o, i] = scale sum over l of x[o, l, i]; each sum is taken in float64.
template <class T>
void sum_rows(const T* x, T* y, const AxisView& view, double scale) {
  parallel_for(cut(view.outer, view.length * view.inner), [=](Index begin, Index end) {
    std::vector<double> sums(static_cast<std::size_t>(view.inner));
    for (Index o = begin; o < end; ++o) {
      std::ranges::fill(sums, 0.0);
      for (Index l = 0; l < view.length; ++l) {
        const T* row = x + (o * view.length + l) * view.inner;
        for (Index i = 0; i < view.inner; ++i)
          sums[static_cast<std::size_t>(i)] += static_cast<double>(row[i]);
      }
      for (Index i = 0; i < view.inner; ++i)
        y[o * view.inner + i] = static_cast<T>(scale * sums[static_cast<std::size_t>(i)]);
    }
  });
}

/// scale times the sum along `axis`; the adjoint repeats dy along it.
Tensor scaled_sum(std::string_view op, const Tensor& x, int axis, bool keep, double scale) {
  const AxisView view = along(x.shape(), axis);
  const Tensor y = make(reduced(x.shape(), axis, keep), x.dtype(),
                        [&]<class T>(T* sums) { sum_rows(numbers(x, sums), sums, view, scale); });
  return record(op, y, {x}, [=, shape = x.shape()](const Tensor& dy, InputGradients& inputs) {
    inputs.add(0, make(shape, dy.dtype(), [&]<class T>(T* dx) {
                 const T* gradient = numbers(dy, dx);
                 for (Index row = 0; row < view.outer * view.length; ++row)
                   for (Index i = 0; i < view.inner; ++i)
                     dx[row * view.inner + i] =
                         static_cast<T>(scale) * gradient[row / view.length * view.inner + i];
               }));
  });
}

Tensor flatten(const Tensor& x) {
  return reshape(x, {-1});
}

double reciprocal(Index length) {
  return length ? 1.0 / static_cast<double>(length) : 0.0;
}

}  // namespace

Tensor sum(const Tensor& x, int axis, bool keep) {
  return scaled_sum("sum", x, normal_axis("sum", axis, x.shape()), keep, 1);
}

Tensor sum(const Tensor& x) {
  return sum(flatten(x), 0);
}

Tensor mean(const Tensor& x, int axis, bool keep) {
  const int normal = normal_axis("mean", axis, x.shape());
  return scaled_sum("mean", x, normal, keep, reciprocal(x.shape()[normal]));
}

Tensor mean(const Tensor& x) {
  return mean(flatten(x), 0);
}

Tensor masked_mean(const Tensor& x, const Indices& lengths) {
  require(x.rank() == 3 && lengths.shape() == Shape{x.dim(0)},
          "[masked_mean] needs x (B, T, D) and lengths (B,), got {} and {}", x.shape(),
          lengths.shape());
  const Index time = x.dim(1), width = x.dim(2);
  for (const auto length : lengths.data())
    require<IndexError>(length >= 0 && length <= time, "[masked_mean] length {} is outside [0, {}]",
                        length, time);
  const Tensor y = make({x.dim(0), width}, x.dtype(), [&]<class T>(T* means) {
    for (Index b = 0; b < x.dim(0); ++b) {
      const Index length = lengths.data()[static_cast<std::size_t>(b)];
      sum_rows(numbers(x, means) + b * time * width, means + b * width, {1, length, width},
               reciprocal(length));
    }
  });
  return record("masked_mean", y, {x},
                [=, shape = x.shape()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, make(shape, dy.dtype(), [&]<class T>(T* dx) {
                               for (Index b = 0; b < shape[0]; ++b) {
                                 const Index length = lengths.data()[static_cast<std::size_t>(b)];
                                 for (Index t = 0; t < time; ++t)
                                   for (Index d = 0; d < width; ++d)
                                     dx[(b * time + t) * width + d] =
                                         t < length ? static_cast<T>(reciprocal(length)) *
                                                          numbers(dy, dx)[b * width + d]
                                                    : T{0};
                               }
                             }));
                });
}

}  // namespace qkv
