#pragma once

#include <string_view>

#include "core/ops/axes.h"
#include "core/parallel.h"
#include "core/tensor.h"

namespace qkv::detail {

/// A reduction over any axes as one over the middle axis of `view`. `x` holds the operand's
/// elements with its history; where the reduced axes are not adjacent they are moved to the end.
struct ReductionView {
  Tensor x;
  AxisView view;
  Shape result;  ///< without the reduced axes or, with `keep`, with size 1 there
};
ReductionView reduction_view(std::string_view op, const Tensor& x, const Axes& axes, bool keep);

/// f(column, first) for each column of elements along the middle axis of `view`: they are at first,
/// first + view.inner, first + 2 view.inner, ... `cost` estimates the operations per element.
template <class F>
void for_each_column(const AxisView& view, Index cost, F f) {
  parallel_for(partition(view.outer * view.inner, cost * view.length), [=](Index begin, Index end) {
    for (Index column = begin; column < end; ++column)
      f(column, column / view.inner * view.length * view.inner + column % view.inner);
  });
}

}  // namespace qkv::detail
