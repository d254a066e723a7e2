#include "core/ops/axes.h"

#include <algorithm>
#include <array>
#include <span>

namespace qkv::detail {

AxisView axis_view(const Shape& shape, int axis) {
  return axis_view(shape, axis, axis + 1);
}

AxisView axis_view(const Shape& shape, int begin, int end) {
  AxisView view{1, 1, 1};
  for (int i = 0; i < shape.rank(); ++i)
    (i < begin ? view.outer : i < end ? view.length : view.inner) *= shape[i];
  return view;
}

Shape with_size(const Shape& shape, int axis, Index size) {
  std::array<Index, Shape::max_rank> sizes{};
  std::ranges::copy(shape, sizes.begin());
  sizes[static_cast<std::size_t>(axis)] = size;
  return Shape(std::span<const Index>(sizes.data(), static_cast<std::size_t>(shape.rank())));
}

}  // namespace qkv::detail
