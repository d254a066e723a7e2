#pragma once

#include "core/shape.h"

namespace qkv::detail {

/// A shape seen from one of its axes, or from several adjacent ones taken as one: `outer` blocks of
/// `length` rows of `inner` adjacent elements.
struct AxisView {
  Index outer, length, inner;
};
AxisView axis_view(const Shape& shape, int axis);
/// The view of the axes [begin, end) as one.
AxisView axis_view(const Shape& shape, int begin, int end);

/// `shape` with another size of `axis`.
Shape with_size(const Shape& shape, int axis, Index size);

}  // namespace qkv::detail
