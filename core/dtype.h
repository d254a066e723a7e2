#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace qkv {

/// The type of a tensor's elements: float32 for training, float64 for gradient checks.
enum class DType : std::uint8_t { float32, float64 };

template <class T>
constexpr DType dtype_of = std::is_same_v<T, float> ? DType::float32 : DType::float64;

constexpr std::size_t size_of(DType dtype) {
  return dtype == DType::float32 ? 4 : 8;
}

constexpr std::string_view to_string(DType dtype) {
  return dtype == DType::float32 ? "float32" : "float64";
}

/// Calls `f.operator()<T>()`, T being the C++ type of `dtype`:
///
///     dispatch(dtype, [&]<class T>() { ... })
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  return dtype == DType::float32 ? f.template operator()<float>() : f.template operator()<double>();
}

}  // namespace qkv
