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

template <>
struct fmt::formatter<qkv::Tensor> : fmt::formatter<fmt::string_view> {
  fmt::format_context::iterator format(const qkv::Tensor& x, fmt::format_context& context) const;
};

template <>
struct fmt::formatter<qkv::Indices> : fmt::formatter<fmt::string_view> {
  fmt::format_context::iterator format(const qkv::Indices& x, fmt::format_context& context) const;
};
