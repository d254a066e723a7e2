#include "core/ops/broadcast.h"

#include <algorithm>
#include <span>

#include "core/ops.h"
#include "core/ops/create.h"
#include "core/parallel.h"

namespace qkv::detail {

Steps broadcast_steps(const Shape& from, const Shape& to) {
  Steps steps{};
  Index step = 1;
  for (int i = from.rank() - 1; i >= 0; --i) {
    if (from[i] > 1) steps[static_cast<std::size_t>(i + to.rank() - from.rank())] = step;
    step *= from[i];
  }
  return steps;
}

Tensor strided_copy(const Tensor& x, const Shape& shape, const Steps& steps) {
  return create(shape, x.dtype(), [&]<class T>(T* y) {
    const T* from = elements(x, y);
    const int last = shape.rank() - 1;
    const Index inner = last < 0 ? 1 : shape[last];
    const Index inner_step = last < 0 ? 1 : steps[static_cast<std::size_t>(last)];
    const Index rows = inner ? shape.size() / inner : 0;
    parallel_for(partition(rows, 2 * inner), [=](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        Index offset = 0, rest = row;
        for (int axis = last - 1; axis >= 0; --axis) {
          offset += rest % shape[axis] * steps[static_cast<std::size_t>(axis)];
          rest /= shape[axis];
        }
        for (Index i = 0; i < inner; ++i) y[row * inner + i] = from[offset + i * inner_step];
      }
    });
  });
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x.detach();
  const bool leading =
      x.size() && std::ranges::equal(x.shape(), std::span(shape.end() - x.rank(), shape.end()));
  if (!leading) return strided_copy(x, shape, broadcast_steps(x.shape(), shape));
  return create(shape, x.dtype(), [&]<class T>(T* y) {
    for (Index i = 0; i < shape.size(); i += x.size()) y = std::copy_n(elements(x, y), x.size(), y);
  });
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  Tensor result = x.detach();
  while (result.rank() > shape.rank()) result = sum(result, 0);
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] == 1 && result.shape()[axis] != 1) result = sum(result, axis, true);
  return result;
}

}  // namespace qkv::detail
