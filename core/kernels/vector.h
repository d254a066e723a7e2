#pragma once

#include <utility>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "core/shape.h"

/// SIMD vectors by the compilers' vector extension: arithmetic, comparisons and ?: work on all
/// lanes at once.
namespace qkv::kernels {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class T>
using Vector [[gnu::vector_size(vector_bytes)]] = T;
/// Lanes of a vector.
template <class T>
constexpr int width = vector_bytes / static_cast<int>(sizeof(T));

template <class T>
Vector<T> load(const T* from) {
  Vector<T> v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}

template <class T>
void store(T* to, const Vector<T>& v) {
  __builtin_memcpy(to, &v, sizeof(v));
}

template <class T>
Vector<T> broadcast(T value) {
  return Vector<T>{} + value;
}

/// Calls f(0), ..., f(N - 1) with compile-time constants, so that indexed arrays stay in registers.
template <int N, class F>
void unrolled(F f) {
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (f(std::integral_constant<int, I>()), ...);
  }
  (std::make_integer_sequence<int, N>());
}

/// 1 / x for normal x, to 1 or 2 units in the last place.
inline Vector<float> reciprocal(const Vector<float>& x) {
#if defined(__AVX512F__)
  // 14 bits, which one Newton step doubles.
  const Vector<float> guess = _mm512_maskz_rcp14_ps(0xffff, x);
  return guess + guess * (1 - x * guess);
#else
  return 1 / x;
#endif
}

#if defined(__AVX512F__)
inline auto first_lanes(Index count) {
  return static_cast<unsigned>((1ULL << count) - 1);
}
#endif

/// Loads the first `count` elements, fewer than the width, padded with zeros.
template <class T>
Vector<T> load_part(const T* from, Index count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == sizeof(float))
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>(first_lanes(count)), from);
  else
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>(first_lanes(count)), from);
#else
  // Unrolled: GCC makes a loop a call of memcpy, around which all vectors are spilled, and warns of
  // what that call might read.
  Vector<T> v = {};
  unrolled<width<T> - 1>([&](int i) {
    if (i < count) v[i] = from[i];
  });
  return v;
#endif
}

/// Loads `count` elements, up to the width, in an innermost loop.
template <class T>
Vector<T> load_most(const T* from, Index count) {
#if !defined(__AVX512F__)
  if (count == width<T>) return load(from);
#endif
  return load_part(from, count);
}

/// Stores the first `count` lanes, fewer than the width.
template <class T>
void store_part(T* to, const Vector<T>& v, Index count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == sizeof(float))
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>(first_lanes(count)), v);
  else
    _mm512_mask_storeu_pd(to, static_cast<__mmask8>(first_lanes(count)), v);
#else
  unrolled<width<T> - 1>([&](int i) {
    if (i < count) to[i] = v[i];
  });
#endif
}

/// The first `count` lanes of `v`, and `rest` in the others.
template <class T>
Vector<T> keep_part(const Vector<T>& v, Index count, T rest) {
  const auto lanes = []<int... Lane>(std::integer_sequence<int, Lane...>) {
    return Vector<T>{static_cast<T>(Lane)...};
  }
  (std::make_integer_sequence<int, width<T>>());
  return lanes < static_cast<T>(count) ? v : broadcast(rest);
}

/// Reduces the lanes of a vector by `join`, halves first.
template <class T, class Join>
T fold(Vector<T> v, Join join) {
  const auto halves = [&]<int Half, int... Lane>(std::integer_sequence<int, Half>,
                                                 std::integer_sequence<int, Lane...>) {
    return join(v, __builtin_shufflevector(v, v, (Lane ^ Half)...));
  };
  const auto all = std::make_integer_sequence<int, width<T>>();
  if constexpr (width < T >> 8) v = halves(std::integer_sequence<int, 8>(), all);
  if constexpr (width < T >> 4) v = halves(std::integer_sequence<int, 4>(), all);
  if constexpr (width < T >> 2) v = halves(std::integer_sequence<int, 2>(), all);
  v = halves(std::integer_sequence<int, 1>(), all);
  return v[0];
}

}  // namespace qkv::kernels
