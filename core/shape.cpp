#include "core/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace qkv {

Shape::Shape(std::initializer_list<Index> sizes)
    : Shape(std::span<const Index>(sizes.begin(), sizes.end())) {}

Shape::Shape(std::span<const Index> sizes) {
  require(sizes.size() <= max_rank, "[shape] rank {} exceeds the largest rank {}", sizes.size(),
          max_rank);
  rank_ = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  for (const Index size : sizes) {
    require(size >= 0, "[shape] sizes must not be negative, got {}", size);
    const bool overflow = __builtin_mul_overflow(size_, size, &size_);
    require(!overflow, "[shape] the number of elements of {} overflows", *this);
  }
}

Index Shape::dim(int axis) const {
  return (*this)[normal_axis("dim", axis, *this)];
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int i = 0; i < shape.rank(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.rank() == 1 ? ",)" : ")");
}

int normal_axis(std::string_view op, int axis, const Shape& shape) {
  require<IndexError>(shape.rank() > 0, "[{}] a scalar has no axes, got axis {}", op, axis);
  require<IndexError>(axis >= -shape.rank() && axis < shape.rank(),
                      "[{}] axis {} is outside [{}, {}) of shape {}", op, axis, -shape.rank(),
                      shape.rank(), shape);
  return axis < 0 ? axis + shape.rank() : axis;
}

Shape broadcast(std::string_view op, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<Index, Shape::max_rank> sizes{};
  for (int i = 1; i <= rank; ++i) {
    const Index from_a = i <= a.rank() ? a[a.rank() - i] : 1;
    const Index from_b = i <= b.rank() ? b[b.rank() - i] : 1;
    require(from_a == from_b || from_a == 1 || from_b == 1,
            "[{}] shapes {} and {} do not broadcast: sizes {} and {} differ and neither is 1", op,
            a, b, from_a, from_b);
    sizes[static_cast<std::size_t>(rank - i)] = from_a == 1 ? from_b : from_a;
  }
  return Shape(std::span<const Index>(sizes.data(), static_cast<std::size_t>(rank)));
}

Axes::Axes(std::initializer_list<int> axes) : count_(axes.size()) {
  require(axes.size() <= axes_.size(), "[axes] {} axes exceed the largest rank {}", axes.size(),
          axes_.size());
  std::ranges::copy(axes, axes_.begin());
}

std::array<bool, Shape::max_rank> Axes::in(std::string_view op, const Shape& shape) const {
  std::array<bool, Shape::max_rank> meant{};
  if (count_ == 0) std::fill_n(meant.begin(), shape.rank(), true);
  for (std::size_t i = 0; i < count_; ++i) {
    const int axis = normal_axis(op, axes_[i], shape);
    bool& seen = meant[static_cast<std::size_t>(axis)];
    require(!seen, "[{}] axis {} of shape {} is given twice", op, axis, shape);
    seen = true;
  }
  return meant;
}

}  // namespace qkv

fmt::format_context::iterator fmt::formatter<qkv::Shape>::format(
    const qkv::Shape& shape, fmt::format_context& context) const {
  return fmt::format_to(context.out(), "{}", qkv::to_string(shape));
}
