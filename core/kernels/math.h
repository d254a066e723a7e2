#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/kernels/vector.h"

/// exp and tanh without branches or calls, so that the compiler vectorises loops over them: for
/// float32 polynomials after range reduction as in Cephes (Moshier 1989), below 2 units in the last
/// place; for float64 the standard library's.
namespace qkv::math {

inline double exp(double x) {
  return std::exp(x);
}

/// For a float or a vector of them; `Int` is an int32 or as many.
template <class Int, class Float>
[[gnu::always_inline]] inline Float exp_of(Float x) {
  constexpr float log2e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  const Float highest = Float{} + 89.0f, lowest = Float{} - 104.0f;
  const Float round = Float{} + 0x1.8p23f;  // adding it rounds to an integer
  x = x > highest ? highest : x;
  x = x < lowest ? lowest : x;
  const Float shifted = x * log2e + round;
  const Float n = shifted - round;
  const Float r = (x - n * ln2_high) - n * ln2_low;
  Float p = Float{} + 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // 2^n in two factors, so that denormal results and infinity come out right.
  const Int exponent = std::bit_cast<Int>(shifted) - std::bit_cast<Int>(round);
  const Int half = exponent >> 1;
  const auto power = [](Int e) { return std::bit_cast<Float>((e + 127) << 23); };
  return p * power(half) * power(exponent - half);
}

inline float exp(float x) {
  return exp_of<std::int32_t>(x);
}

[[gnu::always_inline]] inline kernels::Vector<float> exp(const kernels::Vector<float>& x) {
  return exp_of<kernels::Vector<std::int32_t>>(x);
}

inline kernels::Vector<double> exp(kernels::Vector<double> x) {
  for (int i = 0; i < kernels::width<double>; ++i) x[i] = std::exp(x[i]);
  return x;
}

inline double tanh(double x) {
  return std::tanh(x);
}

inline float tanh(float x) {
  const float a = std::fabs(x);
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float small = p * z * x + x;
  const float large = std::copysign(1.0f - 2.0f / (exp(2.0f * a) + 1.0f), x);
  return a < 0.625f ? small : large;
}

}  // namespace qkv::math
