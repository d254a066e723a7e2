#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/shape.h"

namespace qkv {

struct Node;

/// An array of float32 or float64 numbers, row-major and contiguous.
///
/// A cheap value: copies share the numbers, and no operation changes its operands. A tensor
/// computed from parameters also holds the node of the graph that tells how, from which
/// `gradients_of` (core/autograd.h) works backwards.
class Tensor {
 public:
  /// A tensor without elements, of shape (0,); false in conditions.
  Tensor() = default;
  /// A scalar constant, so that numbers mix with tensors: `2 * x + 1`.
  static Tensor scalar(double value, DType dtype = DType::float32);
  static Tensor zeros(const Shape& shape, DType dtype = DType::float32);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::float32);
  /// Throws ShapeError when the number of values differs from the shape's.
  static Tensor from(std::span<const double> values, const Shape& shape,
                     DType dtype = DType::float32);
  static Tensor from(std::initializer_list<double> values, const Shape& shape,
                     DType dtype = DType::float32);
  /// A tensor with undefined contents, to be filled through `mutable_data` before anyone else holds
  /// it.
  static Tensor empty(const Shape& shape, DType dtype);

  explicit operator bool() const noexcept { return buffer_ != nullptr; }
  const Shape& shape() const noexcept { return shape_; }
  int rank() const noexcept { return shape_.rank(); }
  Index size() const noexcept { return shape_.size(); }
  /// Size of `axis`; negative axes count from the end. Throws IndexError.
  Index dim(int axis) const { return shape_.dim(axis); }
  DType dtype() const noexcept { return dtype_; }

  /// The numbers, row-major. Throws TypeError when T is not the tensor's type.
  template <class T>
  std::span<const T> data() const {
    return {typed<T>(), static_cast<std::size_t>(size())};
  }
  /// The same to write to. Throws ValueError when another tensor shares them: `own` copies.
  template <class T>
  std::span<T> mutable_data() {
    require<ValueError>(
        unshared(), "[tensor] of shape {} is shared and so cannot be changed; use copy_if_shared()",
        shape_);
    return shared_mutable_data<T>();
  }
  /// The same for ops that overwrite a saved input which nothing reads any more.
  template <class T>
  std::span<T> shared_mutable_data() {
    return {typed<T>(), static_cast<std::size_t>(size())};
  }
  /// A copy of the numbers as float64.
  std::vector<double> values() const;
  /// The only element. Throws ShapeError when there are more or fewer.
  double item() const;

  /// The same numbers in another type, without history.
  Tensor to(DType dtype) const;
  /// The same numbers without history.
  Tensor detach() const;
  /// The same elements in another shape of equal size. Throws ShapeError when the sizes differ, and
  /// ValueError for a tensor with history: `reshape` (core/ops.h) reshapes its gradient, too.
  Tensor with_shape(const Shape& shape) const;
  /// The same numbers, made part of a graph by `node`.
  Tensor with_node(std::shared_ptr<Node> node) const;

  /// How the tensor was computed; null for constants.
  const std::shared_ptr<Node>& node() const noexcept { return node_; }
  /// True when no other tensor shares the numbers.
  bool unshared() const noexcept { return buffer_.use_count() <= 1; }

 private:
  template <class T>
  T* typed() const {
    require<TypeError>(dtype_ == dtype_of<T>, "[tensor] holds {}, not {}; convert it with to()",
                       to_string(dtype_), to_string(dtype_of<T>));
    return reinterpret_cast<T*>(buffer_.get());
  }

  Buffer buffer_;
  std::shared_ptr<Node> node_;
  Shape shape_{0};
  DType dtype_ = DType::float32;
};

/// `x`, or a copy without history when another tensor shares its numbers: they may be changed.
Tensor copy_if_shared(Tensor x);

/// Token ids, labels and positions: integers of a type of their own, so that differentiating one
/// does not compile.
class Indices {
 public:
  Indices() = default;
  /// Throws ShapeError when the number of values differs from the shape's.
  Indices(std::span<const std::int32_t> values, const Shape& shape);
  Indices(std::initializer_list<std::int32_t> values, const Shape& shape);

  const Shape& shape() const noexcept { return shape_; }
  Index size() const noexcept { return shape_.size(); }
  Index dim(int axis) const { return shape_.dim(axis); }
  std::span<const std::int32_t> data() const {
    return {reinterpret_cast<const std::int32_t*>(buffer_.get()), static_cast<std::size_t>(size())};
  }

 private:
  Buffer buffer_;
  Shape shape_{0};
};

}  // namespace qkv
