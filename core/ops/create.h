#pragma once

#include <utility>

#include "core/tensor.h"

/// Allocation of results and access to operands.
namespace qkv::detail {

/// A new tensor whose elements `fill(T* y)` writes, T being the C++ type of `dtype`.
template <class Fill>
Tensor create(const Shape& shape, DType dtype, Fill&& fill) {
  Tensor y = Tensor::empty(shape, dtype);
  dispatch(dtype, [&]<class T>() { fill(y.mutable_data<T>().data()); });
  return y;
}

/// The elements of `x` as the type that `y` points to.
template <class T>
const T* elements(const Tensor& x, const T*) {
  return x.data<T>().data();
}

}  // namespace qkv::detail
