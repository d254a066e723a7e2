#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/kernels/vector.h"

/// exp and tanh without branches or calls, so that the compiler vectorises loops over them: for
/// float32 polynomials after range reduction as in Cephes (Moshier 1989), exp's of degree 6 fitted
/// for the least largest relative error, below 2 units in the last place; for float64 the standard
/// library's.
namespace qkv::math {

inline double exp(double x) {
  return std::exp(x);
}

/// exp(x) = factor 2^exponent, for a float or a vector of them, with an integral exponent, also as
/// `sum`, which is exponent + rounding.
template <class Float>
struct Power {
  Float factor, exponent, sum;
};

/// Adding it rounds a float to an integer, which is then in its low bits, plus twice the bias of
/// float32's exponents.
constexpr float rounding = 0x1.8p23f + 2 * 127;

template <class Float>
[[gnu::always_inline]] inline Power<Float> reduced_exp(const Float& x) {
  constexpr float log2e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  const Float sum = x * log2e + rounding, exponent = sum - rounding;
  const Float r = (x - exponent * ln2_high) - exponent * ln2_low;
  Float p = r * 1.3814467e-3f + 8.3687808e-3f;
  p = p * r + 4.1668393e-2f;
  p = p * r + 1.6666520e-1f;
  p = p * r + 4.9999994e-1f;
  return {(p * r + 1.0f) * r + 1.0f, exponent, sum};
}

/// factor 2^exponent for exponents in [-150, 129], in two steps, so that subnormals and infinity
/// are exact; `Int` is an int32 or a vector of as many as `Float` has.
template <class Int, class Float>
[[gnu::always_inline]] inline Float scaled(const Power<Float>& x) {
  // The low bits of each half are a biased exponent.
  const Int sum = std::bit_cast<Int>(x.sum), half = sum >> 1, rest = sum - half;
  return x.factor * std::bit_cast<Float>(half << 23) * std::bit_cast<Float>(rest << 23);
}

[[gnu::always_inline]] inline float value(const Power<float>& x) {
  return scaled<std::int32_t>(x);
}

[[gnu::always_inline]] inline kernels::Vector<float> value(const Power<kernels::Vector<float>>& x) {
#if defined(__AVX512F__)
  return _mm512_maskz_scalef_ps(0xffff, x.factor, x.exponent);
#else
  return scaled<kernels::Vector<std::int32_t>>(x);
#endif
}

/// min(max(x, low), high), of a float or of each element of a vector.
template <class Float, class Bound>
[[gnu::always_inline]] inline Float limited(Float x, Bound low, Bound high) {
  const Float least = Float{} + low, most = Float{} + high;
  x = x > most ? most : x;
  return x < least ? least : x;
}

template <class Float>
[[gnu::always_inline]] inline Float exp_of(const Float& x) {
  return value(reduced_exp(limited(x, -104.0f, 89.0f)));
}

inline float exp(float x) {
  return exp_of(x);
}

[[gnu::always_inline]] inline kernels::Vector<float> exp(const kernels::Vector<float>& x) {
  return exp_of(x);
}

inline kernels::Vector<double> exp(kernels::Vector<double> x) {
  for (int i = 0; i < kernels::width<double>; ++i) x[i] = std::exp(x[i]);
  return x;
}

/// 1 / (1 + exp(-x)); vectors of float32 need x in [-87, 87].
inline float logistic(float x) {
  return 1 / (1 + exp(-x));
}

inline double logistic(double x) {
  return 1 / (1 + exp(-x));
}

[[gnu::always_inline]] inline kernels::Vector<float> logistic(const kernels::Vector<float>& x) {
  return kernels::reciprocal(value(reduced_exp(-x)) + 1.0f);
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
  const float small = p * z * a + a;
  const float large = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  return std::copysign(a < 0.625f ? small : large, x);
}

}  // namespace qkv::math
