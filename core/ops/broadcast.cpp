#include "core/ops/broadcast.h"

#include <algorithm>
#include <span>
#include <vector>
#include <xtensor/xadapt.hpp>
#include <xtensor/xbroadcast.hpp>
#include <xtensor/xnoalias.hpp>

#include "core/ops.h"
#include "core/ops/create.h"

namespace qkv::detail {
namespace {

std::vector<std::size_t> sizes_of(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

/// `data` as an xtensor expression that does not own it.
template <class T>
auto adapt(T* data, const Shape& shape) {
  return xt::adapt(data, static_cast<std::size_t>(shape.size()), xt::no_ownership(),
                   sizes_of(shape));
}

}  // namespace

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x.detach();
  return create(shape, x.dtype(), [&]<class T>(T* y) {
    if (x.size() && std::ranges::equal(x.shape(), std::span(shape.end() - x.rank(), shape.end()))) {
      for (Index i = 0; i < shape.size(); i += x.size())
        y = std::copy_n(elements(x, y), x.size(), y);
      return;
    }
    const auto from = adapt(elements(x, y), x.shape());
    auto to = adapt(y, shape);
    xt::noalias(to) = xt::broadcast(from, sizes_of(shape));
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
