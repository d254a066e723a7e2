#include "core/tensor.h"

#include <fmt/format.h>

#include <ostream>

namespace qkv {
namespace {

constexpr Index edge = 3;  ///< elements of a long axis that are printed at either end

/// Appends the elements below `offset` along `axis` and those after it.
void append(std::string& text, std::span<const double> values, const Shape& shape, int axis,
            Index offset) {
  if (axis == shape.rank()) {
    text += fmt::format("{:.4g}", values[static_cast<std::size_t>(offset)]);
    return;
  }
  const bool last = axis + 1 == shape.rank();
  const std::string between =
      last ? ", "
           : "," + std::string(static_cast<std::size_t>(shape.rank() - axis - 1), '\n') +
                 std::string(static_cast<std::size_t>(axis + 1), ' ');
  const Index size = shape[axis];
  text += '[';
  for (Index i = 0; i < size; ++i) {
    if (i > 0) text += between;
    if (i == edge && size > 2 * edge) {
      text += "..." + between;
      i = size - edge;
    }
    append(text, values, shape, axis + 1, offset * size + i);
  }
  text += ']';
}

}  // namespace

std::string to_string(const Tensor& x) {
  std::string text;
  if (x.has_storage())
    append(text, x.values(), x.shape(), 0, 0);
  else
    text = "without storage";
  return fmt::format("{} {} {}", text, x.shape(), to_string(x.dtype()));
}

std::string to_string(const Indices& x) {
  std::string text;
  append(text, std::vector<double>(x.data().begin(), x.data().end()), x.shape(), 0, 0);
  return fmt::format("{} {} int32", text, x.shape());
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  return out << to_string(x);
}

std::ostream& operator<<(std::ostream& out, const Indices& x) {
  return out << to_string(x);
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << fmt::format("{}", shape);
}

}  // namespace qkv

fmt::format_context::iterator fmt::formatter<qkv::Tensor>::format(
    const qkv::Tensor& x, fmt::format_context& context) const {
  return fmt::formatter<fmt::string_view>::format(qkv::to_string(x), context);
}

fmt::format_context::iterator fmt::formatter<qkv::Indices>::format(
    const qkv::Indices& x, fmt::format_context& context) const {
  return fmt::formatter<fmt::string_view>::format(qkv::to_string(x), context);
}
