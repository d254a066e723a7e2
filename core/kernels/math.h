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

/// exp(x) = factor 2^exponent, for a float or a vector of them; `Int` is an int32 or as many.
template <class Int, class Float>
struct Power {
  Float factor;
  Int exponent;
};

template <class Int, class Float>
[[gnu::always_inline]] inline Power<Int, Float> reduced_exp(Float x) {
  constexpr float log2e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  const Float round = Float{} + 0x1.8p23f;  // adding it rounds to an integer
  const Float shifted = x * log2e + round;
  const Float n = shifted - round;
  const Float r = (x - n * ln2_high) - n * ln2_low;
  Float p = Float{} + 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return {p * r * r + r + 1.0f, std::bit_cast<Int>(shifted) - std::bit_cast<Int>(round)};
}

/// 2^exponent for exponents in [-126, 127].
template <class Float, class Int>
[[gnu::always_inline]] inline Float power_of_two(Int exponent) {
  return std::bit_cast<Float>((exponent + 127) << 23);
}

/// The nearest number in [low, high], for each number of a vector as well.
template <class Float, class Bound>
[[gnu::always_inline]] inline Float limited(Float x, Bound low, Bound high) {
  const Float least = Float{} + low, most = Float{} + high;
  x = x > most ? most : x;
  return x < least ? least : x;
}

template <class Int, class Float>
[[gnu::always_inline]] inline Float exp_of(Float x) {
  const auto [factor, exponent] = reduced_exp<Int>(limited(x, -104.0f, 89.0f));
  // 2^n in two factors, so that denormal results and infinity come out right.
  const Int half = exponent >> 1;
  return factor * power_of_two<Float>(half) * power_of_two<Float>(Int(exponent - half));
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

/// 1 / (1 + exp(-x)); at least 1e-38.
[[gnu::always_inline]] inline kernels::Vector<float> logistic(const kernels::Vector<float>& x) {
  using Float = kernels::Vector<float>;
  const auto [factor, exponent] =
      reduced_exp<kernels::Vector<std::int32_t>>(limited<Float>(-x, -87.0f, 87.0f));
  return kernels::reciprocal(factor * power_of_two<Float>(exponent) + 1.0f);
}

inline kernels::Vector<double> logistic(const kernels::Vector<double>& x) {
  return 1 / (1 + exp(-x));
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
