#pragma once

#include "core/ops/make.h"

namespace qkv {

/// A reduction over any axes as one over the middle axis of `view`. `x` holds the operand's numbers
/// with its history; where the reduced axes are not adjacent they have been moved to the end.
struct ReducedAxes {
  Tensor x;
  AxisView view;
  Shape result;  ///< without the reduced axes or, with `keep`, with size 1 there
};
ReducedAxes reduction(std::string_view op, const Tensor& x, const Axes& axes, bool keep);

/// f(column, first) for each sequence of numbers that lies along the middle axis of `view`: its
/// numbers are first, first + view.inner, first + 2 view.inner, ... `cost` estimates the operations
/// per number.
template <class F>
void for_each_column(const AxisView& view, Index cost, F f) {
  parallel_for(cut(view.outer * view.inner, cost * view.length), [=](Index begin, Index end) {
    for (Index column = begin; column < end; ++column)
      f(column, column / view.inner * view.length * view.inner + column % view.inner);
  });
}

}  // namespace qkv
