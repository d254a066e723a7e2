#include "core/tensor.h"

#include <algorithm>

#include "core/autograd.h"

namespace qkv {
namespace {

template <class From>
Tensor converted(std::span<const From> values, const Shape& shape, DType dtype) {
  require(std::ssize(values) == shape.size(), "[tensor] {} values do not fill the shape {}",
          values.size(), shape);
  Tensor result = Tensor::empty(shape, dtype);
  if (!result.has_storage()) return result;
  dispatch(dtype, [&]<class T>() {
    std::ranges::transform(values, result.mutable_data<T>().begin(),
                           [](From v) { return static_cast<T>(v); });
  });
  return result;
}

}  // namespace

std::byte Tensor::no_storage{};

void Tensor::refuse_access(DType wanted) const {
  require<ValueError>(has_storage(), "[tensor] of shape {} has no storage: WithoutStorage made it",
                      shape_);
  throw TypeError(fmt::format("[tensor] holds {}, not {}; convert it with to()", to_string(dtype_),
                              to_string(wanted)));
}

Tensor Tensor::empty(const Shape& shape, DType dtype) {
  Tensor result;
  result.buffer_ =
      Execution::current().has_storage
          ? detail::allocate_buffer(static_cast<std::size_t>(shape.size()) * size_of(dtype))
          : detail::Buffer(detail::Buffer(), &no_storage);
  result.shape_ = shape;
  result.dtype_ = dtype;
  return result;
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  Tensor result = empty(shape, dtype);
  if (!result.has_storage()) return result;
  dispatch(dtype,
           [&]<class T>() { std::ranges::fill(result.mutable_data<T>(), static_cast<T>(value)); });
  return result;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  return full(shape, 0, dtype);
}
Tensor Tensor::scalar(double value, DType dtype) {
  return full({}, value, dtype);
}

Tensor Tensor::from(std::span<const double> values, const Shape& shape, DType dtype) {
  return converted(values, shape, dtype);
}

Tensor Tensor::from(std::span<const float> values, const Shape& shape, DType dtype) {
  return converted(values, shape, dtype);
}

Tensor Tensor::from(std::initializer_list<double> values, const Shape& shape, DType dtype) {
  return from(std::span(values.begin(), values.size()), shape, dtype);
}

std::vector<double> Tensor::values() const {
  return dispatch(dtype_, [&]<class T>() {
    const auto elements = data<T>();
    return std::vector<double>(elements.begin(), elements.end());
  });
}

double Tensor::item() const {
  require(size() == 1, "[item] needs a tensor of one element, got shape {}", shape_);
  return dispatch(dtype_, [&]<class T>() -> double { return data<T>()[0]; });
}

double Tensor::element(std::span<const Index> index) const {
  require<IndexError>(std::ssize(index) == rank(),
                      "[tensor] of shape {} has {} axes, got {} indices", shape_, rank(),
                      index.size());
  std::size_t offset = 0;
  for (int axis = 0; axis < rank(); ++axis) {
    const Index size = shape_[axis], i = index[static_cast<std::size_t>(axis)];
    require<IndexError>(-size <= i && i < size, "[tensor] of shape {} has no index {} on axis {}",
                        shape_, i, axis);
    offset =
        offset * static_cast<std::size_t>(size) + static_cast<std::size_t>(i < 0 ? i + size : i);
  }
  return dispatch(dtype_, [&]<class T>() -> double { return data<T>()[offset]; });
}

Tensor Tensor::to(DType dtype) const {
  return dtype == dtype_ ? detach() : from(values(), shape_, dtype);
}

Tensor Tensor::detach() const {
  return with_node(nullptr);
}

Tensor Tensor::with_node(std::shared_ptr<Node> node) const {
  Tensor result;
  result.buffer_ = buffer_;
  result.shape_ = shape_;
  result.dtype_ = dtype_;
  if (node) {
    node->shape = shape_;
    node->dtype = dtype_;
  }
  result.node_ = std::move(node);
  return result;
}

Tensor Tensor::with_shape(const Shape& shape) const {
  require(shape.size() == size(), "[reshape] {} has {} elements, {} has {}", shape_, size(), shape,
          shape.size());
  return prefix(shape);
}

Tensor Tensor::prefix(const Shape& shape) const {
  require(shape.size() <= size(), "[prefix] {} has {} elements, {} has {}", shape_, size(), shape,
          shape.size());
  require<ValueError>(!node_,
                      "[tensor] of shape {} has a node, whose gradient keeps that shape; use "
                      "reshape() or slice()",
                      shape_);
  Tensor result = *this;
  result.shape_ = shape;
  return result;
}

Tensor copy_if_shared(Tensor x) {
  if (x.unshared()) return x;
  Tensor copy = Tensor::empty(x.shape(), x.dtype());
  dispatch(x.dtype(),
           [&]<class T>() { std::ranges::copy(x.data<T>(), copy.mutable_data<T>().begin()); });
  return copy;
}

Indices::Indices(std::span<const std::int32_t> values, const Shape& shape)
    : buffer_(detail::allocate_buffer(values.size_bytes())), shape_(shape) {
  require(std::ssize(values) == shape.size(), "[indices] {} values do not fill the shape {}",
          values.size(), shape);
  std::ranges::copy(values, reinterpret_cast<std::int32_t*>(buffer_.get()));
}

Indices::Indices(std::initializer_list<std::int32_t> values, const Shape& shape)
    : Indices(std::span(values.begin(), values.size()), shape) {}

}  // namespace qkv
