#pragma once

#include <array>
#include <concepts>
#include <initializer_list>
#include <iosfwd>
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

/// An array of float32 or float64 elements, row-major and contiguous.
///
/// A cheap value: copies share the buffer, and no operation changes its operands (copy-on-write). A
/// tensor computed from parameters also holds its node in the graph, from which `gradients_of`
/// (core/autograd.h) runs backward.
class Tensor {
 public:
  /// A tensor without elements, of shape (0,); false in conditions.
  Tensor() = default;
  /// A scalar constant, [].
  static Tensor scalar(double value, DType dtype = DType::float32);
  static Tensor zeros(const Shape& shape, DType dtype = DType::float32);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::float32);
  /// Throws ShapeError when the number of values is not the size of the shape.
  static Tensor from(std::span<const double> values, const Shape& shape,
                     DType dtype = DType::float32);
  static Tensor from(std::span<const float> values, const Shape& shape,
                     DType dtype = DType::float32);
  static Tensor from(std::initializer_list<double> values, const Shape& shape,
                     DType dtype = DType::float32);
  /// A tensor with undefined elements, to be written through `mutable_data` before it is copied.
  static Tensor empty(const Shape& shape, DType dtype);

  explicit operator bool() const noexcept { return buffer_ != nullptr; }
  const Shape& shape() const noexcept { return shape_; }
  int rank() const noexcept { return shape_.rank(); }
  Index size() const noexcept { return shape_.size(); }
  /// Size of `axis`; negative axes count from the end. Throws IndexError.
  Index dim(int axis) const { return shape_.dim(axis); }
  DType dtype() const noexcept { return dtype_; }

  /// Whether there are elements besides the shape: false for tensors made within `WithoutStorage`.
  bool has_storage() const noexcept { return buffer_.get() != &no_storage; }

  /// The elements, row-major. Throws TypeError when T is not the tensor's dtype, and ValueError
  /// when the tensor has no storage.
  template <class T>
  std::span<const T> data() const {
    return {typed<T>(), static_cast<std::size_t>(size())};
  }
  /// The elements for writing. Throws ValueError when another tensor shares the buffer;
  /// `copy_if_shared` copies it.
  template <class T>
  std::span<T> mutable_data() {
    require<ValueError>(
        unshared(),
        "[tensor] of shape {} shares its buffer and cannot be written; use copy_if_shared()",
        shape_);
    return shared_mutable_data<T>();
  }
  /// The elements for ops that overwrite a donated buffer (InputGradients::donated_or_new), which
  /// no op reads any more.
  template <class T>
  std::span<T> shared_mutable_data() {
    return {typed<T>(), static_cast<std::size_t>(size())};
  }
  /// A copy of the elements as float64.
  std::vector<double> values() const;
  /// The only element. Throws ShapeError when there are more or fewer.
  double item() const;
  /// The element at an index of each axis, as x(i, j); negative ones count from the end. Throws
  /// IndexError.
  template <std::convertible_to<Index>... I>
  double operator()(I... index) const {
    return element(std::array<Index, sizeof...(I)>{static_cast<Index>(index)...});
  }

  /// A tensor of equal elements in another dtype, without a node.
  Tensor to(DType dtype) const;
  /// A constant of these elements: without a node.
  Tensor detach() const;
  /// These elements in another shape of equal size. Throws ShapeError when the sizes differ, and
  /// ValueError for a tensor with a node: `reshape` (core/ops.h) also reshapes its gradient.
  Tensor with_shape(const Shape& shape) const;
  /// The first elements of a constant in a shape of at most its size, in the same buffer. Throws
  /// ShapeError when there are too few, and ValueError for a tensor with a node.
  Tensor prefix(const Shape& shape) const;
  /// These elements as the value of `node`.
  Tensor with_node(std::shared_ptr<Node> node) const;

  /// The node that computed the tensor; null for constants.
  const std::shared_ptr<Node>& node() const noexcept { return node_; }
  /// Whether no other tensor shares the buffer.
  bool unshared() const noexcept { return buffer_.use_count() <= 1; }

 private:
  double element(std::span<const Index> index) const;
  template <class T>
  T* typed() const {
    if (dtype_ != dtype_of<T> || !has_storage()) refuse_access(dtype_of<T>);
    return reinterpret_cast<T*>(buffer_.get());
  }
  [[noreturn]] void refuse_access(DType wanted) const;

  static std::byte no_storage;  ///< the buffer of all tensors without storage points here
  detail::Buffer buffer_;
  std::shared_ptr<Node> node_;
  Shape shape_{0};
  DType dtype_ = DType::float32;
};

/// While alive, tensors that this thread makes have a shape and no elements. A model that is built
/// so has its parameters' paths and shapes and takes no memory for their values; ops that read
/// values throw ValueError.
class WithoutStorage {
 public:
  WithoutStorage() : scope_(Execution::current().with(&Execution::has_storage, false)) {}

 private:
  ExecutionScope scope_;
};

/// Copy-on-write: `x`, or a copy without a node when another tensor shares its buffer. The result
/// may be written.
Tensor copy_if_shared(Tensor x);

/// Token ids, labels and positions: int32, in a type that has no gradient, so that differentiating
/// one does not compile.
class Indices {
 public:
  Indices() = default;
  /// Throws ShapeError when the number of values is not the size of the shape.
  Indices(std::span<const std::int32_t> values, const Shape& shape);
  Indices(std::initializer_list<std::int32_t> values, const Shape& shape);

  const Shape& shape() const noexcept { return shape_; }
  Index size() const noexcept { return shape_.size(); }
  Index dim(int axis) const { return shape_.dim(axis); }
  std::span<const std::int32_t> data() const {
    return {reinterpret_cast<const std::int32_t*>(buffer_.get()), static_cast<std::size_t>(size())};
  }

 private:
  detail::Buffer buffer_;
  Shape shape_{0};
};

/// The elements to four digits, row by row, then shape and dtype:
///
///     [[0.5, -1],
///      [2, 0.125]] (2, 2) float32
///
/// The first and last three elements stand for an axis of more than six. `fmt` and streams print
/// the same.
std::string to_string(const Tensor& x);
std::string to_string(const Indices& x);
std::ostream& operator<<(std::ostream& out, const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Indices& x);

}  // namespace qkv

template <>
struct fmt::formatter<qkv::Tensor> : fmt::formatter<fmt::string_view> {
  fmt::format_context::iterator format(const qkv::Tensor& x, fmt::format_context& context) const;
};

template <>
struct fmt::formatter<qkv::Indices> : fmt::formatter<fmt::string_view> {
  fmt::format_context::iterator format(const qkv::Indices& x, fmt::format_context& context) const;
};
