#include "core/ops/reduction.h"

#include "core/ops.h"

namespace qkv {

ReducedAxes reduction(std::string_view op, const Tensor& x, const Axes& axes, bool keep) {
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
    return {x, along(shape, last.front(), last.back() + 1), result};
  const auto kept = static_cast<int>(order.size());
  order.insert(order.end(), last.begin(), last.end());
  const Tensor moved = permute(x, order);
  return {moved, along(moved.shape(), kept, moved.rank()), result};
}

}  // namespace qkv
