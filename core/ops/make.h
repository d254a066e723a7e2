#pragma once

#include <string_view>

#include "core/autograd.h"
#include "core/parallel.h"
#include "core/tensor.h"

/// Helpers to write ops with; not for users of the library.
namespace qkv {

/// A new tensor whose numbers `fill(T* y)` writes, T being the C++ type of `dtype`.
template <class Fill>
Tensor make(const Shape& shape, DType dtype, Fill&& fill) {
  Tensor y = Tensor::empty(shape, dtype);
  dispatch(dtype, [&](auto zero) { fill(y.mutable_data<decltype(zero)>().data()); });
  return y;
}

/// The numbers of `x` as the type that `y` points to.
template <class T>
const T* numbers(const Tensor& x, const T*) {
  return x.data<T>().data();
}

/// y[i] = f(xs[i]...) for tensors of one shape, on several threads. `cost` estimates the operations
/// of one f.
template <class F, class... Tensors>
Tensor map(Index cost, F f, const Tensor& x, const Tensors&... others) {
  return make(x.shape(), x.dtype(), [&]<class T>(T* y) {
    const auto loop = [&](const auto*... inputs) {
      parallel_for(cut(x.size(), cost), [=](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) y[i] = f(inputs[i]...);
      });
    };
    loop(numbers(x, y), numbers(others, y)...);
  });
}

inline void require_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  require<TypeError>(a.dtype() == b.dtype(),
                     "[{}] number types differ: {} and {}; convert one with to()", op,
                     to_string(a.dtype()), to_string(b.dtype()));
}

/// x repeated along the axes in which `shape` is larger; a constant.
Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// The adjoint of `broadcast_to`: x summed over the axes in which `shape` is smaller; a constant.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace qkv
