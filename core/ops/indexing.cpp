#include "core/ops/indexing.h"

#include <algorithm>
#include <vector>

#include "core/autograd.h"
#include "core/ops.h"
#include "core/ops/axes.h"
#include "core/ops/create.h"

namespace qkv {

Tensor detail::gather_elements(std::string_view op, const Tensor& x, const Shape& shape,
                               Offsets offsets) {
  const Tensor y = create(shape, x.dtype(), [&]<class T>(T* to) {
    const T* from = elements(x, to);
    for (const Index offset : offsets) *to++ = offset < 0 ? T{0} : from[offset];
  });
  return record(
      op, y, {x},
      [shape = x.shape(), offsets = std::move(offsets)](const Tensor& dy, InputGradients& inputs) {
        inputs.add(0, create(shape, dy.dtype(), [&]<class T>(T* dx) {
                     std::fill_n(dx, shape.size(), T{0});
                     const T* gradient = elements(dy, dx);
                     for (const Index offset : offsets) {
                       if (offset >= 0) dx[offset] += *gradient;
                       ++gradient;
                     }
                   }));
      });
}

using namespace detail;

Tensor gather(const Tensor& x, int axis, const Indices& ids) {
  const int normal = normal_axis("gather", axis, x.shape());
  const AxisView from = axis_view(x.shape(), normal);
  const bool fits = ids.shape().rank() == x.rank() &&
                    with_size(ids.shape(), normal, 0) == with_size(x.shape(), normal, 0);
  require(fits, "[gather] ids {} must have the sizes of x {} in all axes but {}", ids.shape(),
          x.shape(), axis);
  Offsets offsets(static_cast<std::size_t>(ids.size()));
  const AxisView to = axis_view(ids.shape(), normal);
  for (Index i = 0; i < ids.size(); ++i) {
    const Index id = ids.data()[static_cast<std::size_t>(i)];
    require<IndexError>(id >= 0 && id < from.length,
                        "[gather] id {} is outside [0, {}), axis {} of x {}", id, from.length, axis,
                        x.shape());
    const Index outer = i / (to.length * to.inner);
    offsets[static_cast<std::size_t>(i)] = (outer * from.length + id) * from.inner + i % to.inner;
  }
  return gather_elements("gather", x, ids.shape(), std::move(offsets));
}

Tensor select_rows(const Tensor& x, const Indices& rows) {
  require(x.rank() == 3 && rows.shape() == Shape{x.dim(0)},
          "[select_rows] needs x (B, T, D) and rows (B,), got {} and {}", x.shape(), rows.shape());
  const Index time = x.dim(1), width = x.dim(2);
  for (const auto row : rows.data())
    require<IndexError>(row >= 0 && row < time, "[select_rows] row {} is outside [0, {})", row,
                        time);
  const auto offset = [=](Index b) {
    return (b * time + rows.data()[static_cast<std::size_t>(b)]) * width;
  };
  const Tensor y = create({x.dim(0), width}, x.dtype(), [&]<class T>(T* selected) {
    for (Index b = 0; b < x.dim(0); ++b)
      std::copy_n(elements(x, selected) + offset(b), width, selected + b * width);
  });
  return record("select_rows", y, {x},
                [=, shape = x.shape()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, create(shape, dy.dtype(), [&]<class T>(T* dx) {
                               std::fill_n(dx, shape.size(), T{0});
                               for (Index b = 0; b < shape[0]; ++b)
                                 std::copy_n(elements(dy, dx) + b * width, width, dx + offset(b));
                             }));
                });
}

}  // namespace qkv
