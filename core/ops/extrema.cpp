#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/ops.h"
#include "core/ops/axes.h"
#include "core/ops/checks.h"
#include "core/ops/elementwise.h"
#include "core/ops/indexing.h"
#include "core/ops/reductions.h"

namespace qkv {
namespace {

using namespace detail;

/// The offset of the best element in each column of `view`, of equal ones the first. Only the first
/// `length(column)` elements count; -1 where there are none.
template <class Length, class Better>
Offsets best(const Tensor& x, const AxisView& view, Length length, Better better) {
  Offsets offsets(static_cast<std::size_t>(view.outer * view.inner), -1);
  dispatch(x.dtype(), [&]<class T>() {
    const auto* from = x.data<T>().data();
    for_each_column(view, 1, [&, from](Index column, Index first) {
      const Index end = first + length(column) * view.inner;
      Index found = end > first ? first : -1;
      for (Index i = first; i < end; i += view.inner) {
        if (!better(from[i], from[found])) continue;
        found = i;
        if (std::isnan(from[i])) break;
      }
      offsets[static_cast<std::size_t>(column)] = found;
    });
  });
  return offsets;
}

// NaN is better than all others: the search ends at the first.
constexpr auto above = [](auto a, auto b) { return !(a <= b); };
constexpr auto below = [](auto a, auto b) { return !(a >= b); };

/// `best` of whole columns. Throws ValueError when they are empty.
template <class Better>
Offsets best(std::string_view op, const Tensor& x, const AxisView& view, Better better) {
  require<ValueError>(view.length > 0 || view.outer * view.inner == 0,
                      "[{}] shape {} has no elements along the axes, so none is the largest or "
                      "smallest",
                      op, x.shape());
  const Index length = view.length;
  return best(
      x, view, [=](Index) { return length; }, better);
}

template <class Better>
Tensor extreme(std::string_view op, const Tensor& x, const Axes& axes, bool keep, Better better) {
  const auto [operand, view, result] = reduction_view(op, x, axes, keep);
  return gather_elements(op, operand, result, best(op, operand, view, better));
}

/// The index of each offset along the middle axis of `view`.
Indices along_axis(const Offsets& offsets, const AxisView& view, const Shape& shape) {
  std::vector<std::int32_t> indices(offsets.size());
  std::ranges::transform(offsets, indices.begin(), [&](Index offset) {
    return static_cast<std::int32_t>(offset / view.inner % view.length);
  });
  return {indices, shape};
}

}  // namespace

Tensor max(const Tensor& x, const Axes& axes, bool keep) {
  return extreme("max", x, axes, keep, above);
}

Tensor min(const Tensor& x, const Axes& axes, bool keep) {
  return extreme("min", x, axes, keep, below);
}

Indices argmax(const Tensor& x, const Axes& axes, bool keep) {
  const auto [operand, view, result] = reduction_view("argmax", x, axes, keep);
  return along_axis(best("argmax", operand, view, above), view, result);
}

TopK topk(const Tensor& x, Index count, int axis) {
  const int normal = normal_axis("topk", axis, x.shape());
  const AxisView view = axis_view(x.shape(), normal);
  require<ValueError>(count >= 0 && count <= view.length,
                      "[topk] cannot take {} of the {} elements along axis {} of shape {}", count,
                      view.length, axis, x.shape());
  const Shape shape = with_size(x.shape(), normal, count);
  Offsets offsets(static_cast<std::size_t>(shape.size()));
  dispatch(x.dtype(), [&]<class T>() {
    const auto* from = x.data<T>().data();
    for_each_column(view, transcendental, [&, from](Index column, Index first) {
      Offsets order(static_cast<std::size_t>(view.length));
      std::ranges::generate(
          order, [&, next = first]() mutable { return std::exchange(next, next + view.inner); });
      const auto above_or_nan = [=](Index a, Index b) {
        return from[a] > from[b] || (std::isnan(from[a]) && !std::isnan(from[b]));
      };
      std::ranges::partial_sort(order, order.begin() + count, [=](Index a, Index b) {
        return above_or_nan(a, b) || (a < b && !above_or_nan(b, a));
      });
      const Index to = column / view.inner * count * view.inner + column % view.inner;
      for (Index i = 0; i < count; ++i)
        offsets[static_cast<std::size_t>(to + i * view.inner)] = order[static_cast<std::size_t>(i)];
    });
  });
  Indices indices = along_axis(offsets, view, shape);
  return {gather_elements("topk", x, shape, std::move(offsets)), std::move(indices)};
}

Tensor masked_max(const Tensor& x, const Indices& lengths) {
  require_lengths("masked_max", x, lengths);
  const Index width = x.dim(2);
  const auto length_of = [&](Index column) -> Index {
    return lengths.data()[static_cast<std::size_t>(column / width)];
  };
  return gather_elements("masked_max", x, {x.dim(0), width},
                         best(x, axis_view(x.shape(), 1), length_of, above));
}

}  // namespace qkv
