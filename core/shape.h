#pragma once

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

namespace qkv {

/// Sizes, positions and counts.
using Index = std::int64_t;

/// The sizes of an array's axes, outermost first. A scalar has rank 0 and size 1. No heap memory.
class Shape {
 public:
  static constexpr int max_rank = 6;

  Shape() = default;
  /// Throws ShapeError when a size is negative, the rank exceeds `max_rank` or the product
  /// overflows.
  Shape(std::initializer_list<Index> sizes);
  explicit Shape(std::span<const Index> sizes);

  int rank() const noexcept { return rank_; }
  /// Number of elements.
  Index size() const noexcept { return size_; }
  /// Size of the axis `axis` in [0, rank).
  Index operator[](int axis) const noexcept { return sizes_[static_cast<std::size_t>(axis)]; }
  /// Size of `axis`; negative axes count from the end. Throws IndexError.
  Index dim(int axis) const;

  const Index* begin() const noexcept { return sizes_.data(); }
  const Index* end() const noexcept { return sizes_.data() + rank_; }
  std::span<const Index> sizes() const noexcept { return {begin(), end()}; }

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<Index, max_rank> sizes_{};
  int rank_ = 0;
  Index size_ = 1;
};

/// "(2, 3)"
std::string to_string(const Shape& shape);

/// `axis` counted from the front; negative axes count from the end. Throws IndexError "[op] ...".
int normal_axis(std::string_view op, int axis, const Shape& shape);

/// NumPy's broadcasting: axes are aligned at the end and sizes of 1 stretch. Throws ShapeError
/// "[op] ...".
Shape broadcast(std::string_view op, const Shape& a, const Shape& b);

/// The axes that an op reduces: one, several, or all of them, which is the default.
class Axes {
 public:
  Axes() = default;
  Axes(int axis) : Axes({axis}) {}
  /// Throws ShapeError when there are more than the largest rank. An empty list means all.
  Axes(std::initializer_list<int> axes);

  /// Which axes of `shape` are meant. Throws "[op] ...": IndexError when there is no such axis,
  /// ShapeError when one is given twice.
  std::array<bool, Shape::max_rank> in(std::string_view op, const Shape& shape) const;

 private:
  std::array<int, Shape::max_rank> axes_{};
  std::size_t count_ = 0;  ///< 0: all
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace qkv

template <>
struct fmt::formatter<qkv::Shape> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  fmt::format_context::iterator format(const qkv::Shape& shape, fmt::format_context& context) const;
};
