#include <fmt/ranges.h>

#include <algorithm>

#include "core/autograd.h"
#include "core/ops.h"
#include "core/ops/axes.h"
#include "core/ops/broadcast.h"
#include "core/ops/checks.h"
#include "core/ops/create.h"
#include "core/parallel.h"

namespace qkv {
namespace {

using namespace detail;

Tensor permuted(const Tensor& x, std::span<const int> axes) {
  std::array<Index, Shape::max_rank> sizes{}, stride{};
  for (Index axis = x.rank() - 1, step = 1; axis >= 0; --axis) {
    stride[static_cast<std::size_t>(axis)] = step;
    step *= x.shape()[static_cast<int>(axis)];
  }
  Steps steps{};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    sizes[i] = x.shape()[axes[i]];
    steps[i] = stride[static_cast<std::size_t>(axes[i])];
  }
  return strided_copy(x, Shape(std::span<const Index>(sizes.data(), axes.size())), steps);
}

/// Rows begin, begin + step, ... along the middle axis of `view`.
struct Rows {
  AxisView view;
  Index begin = 0, step = 1;
};

/// Copies `length` rows along an axis between arrays that differ only in their size along it.
template <class T>
void copy_rows(const T* from, const Rows& source, T* to, const Rows& target, Index length) {
  const Index inner = source.view.inner;
  // Adjacent rows are one run.
  const bool adjacent = source.step == 1 && target.step == 1;
  const Index runs = adjacent ? 1 : length, run = adjacent ? length * inner : inner;
  for (Index o = 0; o < source.view.outer; ++o)
    for (Index i = 0; i < runs; ++i)
      std::copy_n(from + (o * source.view.length + source.begin + i * source.step) * inner, run,
                  to + (o * target.view.length + target.begin + i * target.step) * inner);
}

Tensor sliced(const Tensor& x, int axis, Index begin, Index end, Index step = 1) {
  const Index length = (end - begin + step - 1) / step;
  const Shape shape = with_size(x.shape(), axis, length);
  return create(shape, x.dtype(), [&]<class T>(T* y) {
    copy_rows(elements(x, y), {axis_view(x.shape(), axis), begin, step}, y,
              {axis_view(shape, axis)}, length);
  });
}

}  // namespace

Tensor reshape(const Tensor& x, std::initializer_list<Index> sizes) {
  std::vector<Index> known(sizes);
  const auto inferred = std::ranges::find(known, -1);
  if (inferred != known.end()) {
    if (std::ranges::count(known, -1) > 1)
      throw ShapeError(
          fmt::format("[reshape] only one size may be -1, got ({})", fmt::join(known, ", ")));
    *inferred = 1;
    const Index others = Shape(known).size();
    require(others > 0 && x.size() % others == 0,
            "[reshape] {} elements cannot be split into rows of {}", x.size(), others);
    *inferred = x.size() / others;
  }
  return reshape(x, Shape(known));
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  return record("reshape", x.detach().with_shape(shape), {x},
                [from = x.shape()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, dy.with_shape(from));
                });
}

Tensor expand(const Tensor& x, const Shape& shape) {
  require(broadcast("expand", x.shape(), shape) == shape,
          "[expand] {} does not broadcast to the smaller {}", x.shape(), shape);
  return record("expand", broadcast_to(x, shape), {x},
                [from = x.shape()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, sum_to(dy, from));
                });
}

Tensor expand(const Tensor& x, std::initializer_list<Index> sizes) {
  std::vector<Index> known(sizes);
  const auto added = std::ssize(known) - x.rank();
  for (auto i = std::ssize(known) - 1; i >= 0; --i)
    if (Index& size = known[static_cast<std::size_t>(i)]; size == -1) {
      require(i >= added, "[expand] size -1 of axis {} needs an axis of x {} that it keeps", i,
              x.shape());
      size = x.shape()[static_cast<int>(i - added)];
    }
  return expand(x, Shape(known));
}

Tensor permute(const Tensor& x, std::initializer_list<int> axes) {
  return permute(x, std::span(axes.begin(), axes.size()));
}

Tensor permute(const Tensor& x, std::span<const int> axes) {
  std::array<int, Shape::max_rank> order{}, inverse{};
  require(std::ssize(axes) == x.rank(), "[permute] {} axes given for shape {}", axes.size(),
          x.shape());
  std::array<bool, Shape::max_rank> seen{};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(normal_axis("permute", axes[i], x.shape()));
    require(!std::exchange(seen[axis], true), "[permute] axis {} is given twice", axis);
    order[i] = static_cast<int>(axis);
    inverse[axis] = static_cast<int>(i);
  }
  const std::size_t rank = axes.size();
  return record("permute", permuted(x, {order.data(), rank}), {x},
                [inverse, rank](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, permuted(dy, {inverse.data(), rank}));
                });
}

Tensor slice(const Tensor& x, int axis, Index begin, Index end, Index step) {
  const int normal = normal_axis("slice", axis, x.shape());
  const Index size = x.shape()[normal];
  const Index first = begin < 0 ? begin + size : begin, last = end < 0 ? end + size : end;
  require<IndexError>(0 <= first && first <= last && last <= size,
                      "[slice] range [{}, {}) is outside axis {} of shape {}", begin, end, axis,
                      x.shape());
  require<ValueError>(step >= 1, "[slice] step {} must be at least 1", step);
  return record("slice", sliced(x, normal, first, last, step), {x},
                [=, shape = x.shape()](const Tensor& dy, InputGradients& inputs) {
                  Tensor dx = Tensor::zeros(shape, dy.dtype());
                  dispatch(dy.dtype(), [&]<class T>() {
                    copy_rows(dy.data<T>().data(), {axis_view(dy.shape(), normal)},
                              dx.mutable_data<T>().data(), {axis_view(shape, normal), first, step},
                              dy.shape()[normal]);
                  });
                  inputs.add(0, std::move(dx));
                });
}

Tensor concatenate(const std::vector<Tensor>& tensors, int axis) {
  require(!tensors.empty(), "[concatenate] needs at least one tensor");
  const Tensor& first = tensors.front();
  const int normal = normal_axis("concatenate", axis, first.shape());
  std::vector<Index> begins = {0};
  for (const Tensor& tensor : tensors) {
    require_same_dtype("concatenate", first, tensor);
    require(tensor.rank() == first.rank() &&
                with_size(tensor.shape(), normal, 0) == with_size(first.shape(), normal, 0),
            "[concatenate] shapes {} and {} differ in another axis than {}", first.shape(),
            tensor.shape(), axis);
    begins.push_back(begins.back() + tensor.shape()[normal]);
  }
  const Shape shape = with_size(first.shape(), normal, begins.back());
  const Tensor y = create(shape, first.dtype(), [&]<class T>(T* joined) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      copy_rows(elements(tensors[i], joined), {axis_view(tensors[i].shape(), normal)}, joined,
                {axis_view(shape, normal), begins[i]}, begins[i + 1] - begins[i]);
  });
  return record("concatenate", y, tensors, [=](const Tensor& dy, InputGradients& inputs) {
    for (std::size_t i = 0; i + 1 < begins.size(); ++i)
      inputs.add(i, [&] { return sliced(dy, normal, begins[i], begins[i + 1]); });
  });
}

Tensor stack(const std::vector<Tensor>& tensors, int axis) {
  require(!tensors.empty(), "[stack] needs at least one tensor");
  const Shape& first = tensors.front().shape();
  std::vector<Index> sizes(first.begin(), first.end());
  sizes.push_back(1);
  const int normal = normal_axis("stack", axis, Shape(sizes));
  std::rotate(sizes.begin() + normal, sizes.end() - 1, sizes.end());
  std::vector<Tensor> rows;
  for (const Tensor& tensor : tensors) {
    require_same_dtype("stack", tensors.front(), tensor);
    require(tensor.shape() == first, "[stack] shapes {} and {} differ", first, tensor.shape());
    rows.push_back(reshape(tensor, Shape(sizes)));
  }
  return concatenate(rows, normal);
}

std::vector<Tensor> split(const Tensor& x, int axis, Index chunks) {
  const Index length = x.shape()[normal_axis("split", axis, x.shape())];
  require<ValueError>(chunks >= 1, "[split] shape {} cannot be split into {} chunks", x.shape(),
                      chunks);
  if (length == 0) return std::vector<Tensor>(static_cast<std::size_t>(chunks), x);
  return split_by_size(x, axis, (length + chunks - 1) / chunks);
}

std::vector<Tensor> split_by_size(const Tensor& x, int axis, Index size) {
  const Index length = x.shape()[normal_axis("split_by_size", axis, x.shape())];
  require<ValueError>(size >= 1, "[split_by_size] shape {} cannot be split into slices of size {}",
                      x.shape(), size);
  std::vector<Tensor> result;
  Index begin = 0;
  do {
    const Index end = std::min(begin + size, length);
    result.push_back(slice(x, axis, begin, end));
    begin = end;
  } while (begin < length);
  return result;
}

Tensor pad(const Tensor& x, int axis, Index before, Index after, double value) {
  const int normal = normal_axis("pad", axis, x.shape());
  require<ValueError>(before >= 0 && after >= 0,
                      "[pad] sizes before and after must not be negative, got {} and {}", before,
                      after);
  Index padded = 0;
  const bool overflow = __builtin_add_overflow(before, after, &padded) ||
                        __builtin_add_overflow(padded, x.shape()[normal], &padded);
  require<ValueError>(!overflow, "[pad] axis {} of shape {} padded by {} and {} overflows", axis,
                      x.shape(), before, after);
  const auto filling = [&](Index size) {
    return Tensor::full(with_size(x.shape(), normal, size), value, x.dtype());
  };
  return concatenate({filling(before), x, filling(after)}, normal);
}

}  // namespace qkv
