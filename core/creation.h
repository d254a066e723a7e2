#pragma once

#include "core/random.h"
#include "core/tensor.h"

namespace qkv {
namespace detail {
/// A tensor of element(i) at each position i.
template <class F>
Tensor generated(const Shape& shape, DType dtype, F element) {
  Tensor values = Tensor::empty(shape, dtype);
  if (!values.has_storage()) return values;
  dispatch(dtype, [&]<class T>() {
    std::uint64_t i = 0;
    for (T& value : values.mutable_data<T>()) value = static_cast<T>(element(i++));
  });
  return values;
}
}  // namespace detail

/// Zeros of the shape and dtype of `x`.
Tensor zeros_like(const Tensor& x);
/// Ones of the shape and dtype of `x`.
Tensor ones_like(const Tensor& x);
/// 0, 1, ..., size - 1: [size]. Throws ShapeError when the size is negative.
Tensor arange(Index size, DType dtype = DType::float32);
/// Uniform over [0, 1): a pure function of `random`, as all random numbers.
Tensor rand(const Shape& shape, const Random& random, DType dtype = DType::float32);
/// Normal with mean 0 and standard deviation 1.
Tensor randn(const Shape& shape, const Random& random, DType dtype = DType::float32);
/// The lower triangle of the last two axes of `x`, zeros above: as a mask of 1 and 0,
/// tril(ones_like(x)). Throws ShapeError for fewer than two axes.
Tensor tril(const Tensor& x);

}  // namespace qkv
