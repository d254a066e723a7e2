#pragma once

#include <iosfwd>
#include <string>

#include "core/tensor.h"

namespace qkv {

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

template <class T>
requires std::same_as<T, qkv::Tensor> || std::same_as<T, qkv::Indices>
struct fmt::formatter<T> : fmt::formatter<std::string_view> {
  auto format(const T& x, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(qkv::to_string(x), context);
  }
};
