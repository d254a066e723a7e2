#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/dtype.h"

namespace qkv::fuzz {

using Real = long double;

/// Limits of a floating-point type. `unit` is the largest relative error of one rounding.
struct Format {
  Real unit, largest, smallest_normal;
};

inline const Format& format_of(DType dtype) {
  static const Format formats[] = {
      {0x1p-24L, std::numeric_limits<float>::max(), std::numeric_limits<float>::min()},
      {0x1p-53L, std::numeric_limits<double>::max(), std::numeric_limits<double>::min()}};
  return formats[dtype == DType::float32 ? 0 : 1];
}

/// Computed errors may be this many times the first-order bound.
constexpr Real slack = 4;
/// Errors of subnormal values may be this many times larger: products in another order round a
/// smaller intermediate value, which a later factor magnifies.
constexpr Real underflow_slack = 32;

/// The exact value of an expression, and how far a computation in a floating-point type may be from
/// it: first-order running error analysis (Higham 2002, "Accuracy and Stability of Numerical
/// Algorithms", 3.3).
///
/// `error` counts units of roundoff, and is 0 only for values that the type computes exactly. A
/// value beyond the type's range stays finite here: the type has an infinity in its place. `unsure`
/// marks what the type may not give at all, as a difference of two infinities that are finite here.
struct Number {
  Real value = 0;
  double error = 0;
  DType dtype = DType::float32;
  bool unsure = false;

  const Format& format() const { return format_of(dtype); }
  bool finite() const { return std::isfinite(value); }
  /// Too large for the type.
  bool over() const { return finite() && std::fabs(value) > format().largest; }
  bool exact() const { return error == 0 && !unsure; }
  void loosen(Real more) { error += static_cast<double>(more); }
  /// The largest error to accept.
  Real bound() const { return slack * format().unit * error; }
};

/// A number that is rounded to the type unless the type can hold it.
inline Number constant(Real value, DType dtype) {
  const Real held = dtype == DType::float32 ? static_cast<Real>(static_cast<float>(value))
                                            : static_cast<Real>(static_cast<double>(value));
  const Real error = std::max(std::fabs(value), format_of(dtype).smallest_normal);
  return {value, held == value || std::isnan(value) ? 0 : static_cast<double>(error), dtype,
          held == 0 && value != 0};
}

/// `value` after an operation whose operands' errors alone make it `error` wrong, and which rounds
/// `roundings` times. `rest()` is what long double itself cuts off.
template <class Rest>
Number rounded(Real value, Real error, DType dtype, bool unsure, Real roundings, Rest rest) {
  const Format& format = format_of(dtype);
  if (!std::isfinite(value)) return {value, 0, dtype, unsure};
  const bool exact =
      error == 0 && roundings == 1 && constant(value, dtype).error == 0 && rest() == 0;
  if (!exact && !(value == 0 && error == 0))
    error += roundings * (std::fabs(value) < format.smallest_normal
                              ? underflow_slack * format.smallest_normal
                              : std::fabs(value));
  Number result{value, static_cast<double>(error), dtype, unsure || !(error < 1e300L)};
  const Real bound = result.bound();
  if ((std::fabs(value) > format.largest) != (std::fabs(value) + bound > format.largest) ||
      (std::fabs(value) > format.largest && std::fabs(value) - bound <= format.largest))
    result.unsure = true;
  return result;
}

inline Number rounded(Real value, Real error, DType dtype, bool unsure, Real roundings = 1) {
  return rounded(value, error, dtype, unsure, roundings, [] { return Real{0}; });
}

/// Marks what was computed from an infinity of the type that is finite here.
inline Number after_overflow(Number result, bool over) {
  result.unsure = result.unsure || (over && !result.over());
  return result;
}

/// a b + c for values of the type under test.
inline double rest(Real a, Real b, Real c) {
  return std::fma(static_cast<double>(a), static_cast<double>(b), static_cast<double>(c));
}

inline Real times(Real error, Real factor) {
  return error == 0 ? 0 : error * std::fabs(factor);
}

inline Number operator-(Number a) {
  a.value = -a.value;
  return a;
}

inline Number operator+(const Number& a, const Number& b) {
  return after_overflow(
      rounded(a.value + b.value, a.error + b.error, a.dtype, a.unsure || b.unsure),
      a.over() || b.over());
}

inline Number operator-(const Number& a, const Number& b) {
  return a + -b;
}

inline Number operator*(const Number& a, const Number& b) {
  const Real error =
      times(a.error, b.value) + times(b.error, a.value) + a.error * b.error * a.format().unit;
  const Real value = a.value * b.value;
  // Infinity times what the type may round to 0.
  const auto vanishes = [](const Number& x) {
    return !x.exact() && std::fabs(x.value) <= std::max(x.bound(), x.format().smallest_normal);
  };
  const auto infinite = [](const Number& x) { return std::isinf(x.value) || x.over(); };
  const bool vague = (infinite(a) && vanishes(b)) || (infinite(b) && vanishes(a));
  return after_overflow(rounded(value, error, a.dtype, a.unsure || b.unsure || vague, 1,
                                [&] { return rest(a.value, b.value, -value); }),
                        a.over() || b.over());
}

inline Number operator/(const Number& a, const Number& b) {
  const Real value = a.value / b.value;
  const auto may_be_zero = [](const Number& x) {
    return !x.exact() && std::fabs(x.value) <= x.bound();
  };
  // By 0: an infinity whose sign, or a NaN, depends on the dividend's error.
  const bool vague = may_be_zero(b) || (b.value == 0 && may_be_zero(a));
  Number result =
      rounded(value, (a.error + times(b.error, value)) / std::fabs(b.value), a.dtype,
              a.unsure || b.unsure || vague, 1, [&] { return rest(value, b.value, -a.value); });
  // By an infinity that should be finite: 0 instead of a small value.
  if (b.over() && !a.over()) result.loosen(std::fabs(value) / a.format().unit);
  return after_overflow(result, a.over());
}

/// f(x) from its exact value and derivative, where computing it rounds `roundings` times.
inline Number function(const Number& x, Real value, Real derivative, Real roundings = 3) {
  const bool vague =
      x.error * x.format().unit * slack > 1e-2L * std::max<Real>(1, std::fabs(x.value));
  return after_overflow(
      rounded(value, times(x.error, derivative), x.dtype, x.unsure || vague, roundings), x.over());
}

inline Number exp(const Number& x) {
  const Real value = std::exp(x.value);
  return function(x, value, value);
}

inline Number log(const Number& x) {
  Number y = function(x, std::log(x.value), 1 / x.value);
  y.unsure = y.unsure || (!x.exact() && x.value <= x.bound());
  return after_overflow(y, x.over());
}

inline Number sqrt(const Number& x) {
  const Real value = std::sqrt(x.value);
  Number y = rounded(
      value,
      x.error == 0 ? 0 : std::min(x.error / (2 * value), std::sqrt(x.error / x.format().unit)),
      x.dtype, x.unsure || (!x.exact() && x.value - x.bound() < 0), 1,
      [&] { return rest(value, value, -x.value); });
  return after_overflow(y, x.over());
}

inline Number tanh(const Number& x) {
  const Real value = std::tanh(x.value);
  return function(x, value, 1 - value * value);
}

inline Number abs(const Number& x) {
  return x.value < 0 || std::signbit(x.value) ? -x : x;
}

inline Number sigmoid(const Number& x) {
  const Real power = std::exp(-x.value), value = 1 / (1 + power);
  Number y = function(x, value, value * (1 - value), 4);
  if (power > x.format().largest / 2 && x.finite()) y.loosen(value / x.format().unit);
  return y;
}

/// The sum of numbers in any order. Rounding errors of n terms grow like sqrt(n) (Higham & Mary
/// 2019, "A New Approach to Probabilistic Rounding Error Analysis") or, of equal terms, at most
/// like n / 2.
class Sum {
 public:
  explicit Sum(DType dtype) : dtype_(dtype) {}

  void add(const Number& x) {
    value_ += x.value;
    error_ += x.error;
    if (x.value == 0 && x.exact()) {
      ++zeros_;
      return;
    }
    size_ += std::fabs(x.value);
    (x.value < 0 ? negative_ : positive_) = true;
    if (x.finite()) finite_size_ += std::fabs(x.value);
    unsure_ = unsure_ || x.unsure;
    over_ = over_ || x.over();
    ++terms_;
  }
  bool empty() const { return terms_ + zeros_ == 0; }
  Number number() const {
    if (terms_ <= 1) return {value_, static_cast<double>(error_), dtype_, unsure_};
    const bool mixed = positive_ && negative_;
    const Real error =
        std::isfinite(value_) ? error_ + (std::sqrt(terms_) + terms_ / 2 / slack) * size_ : 0;
    Number sum{value_, static_cast<double>(error), dtype_, unsure_ || !(error < 1e300L)};
    const Real bound = sum.bound(), largest = sum.format().largest;
    if ((mixed && size_ > largest) || (!std::isfinite(value_) && finite_size_ > largest) ||
        std::fabs(std::fabs(value_) - largest) <= bound)
      sum.unsure = true;
    return after_overflow(sum, over_);
  }

 private:
  DType dtype_;
  Real value_ = 0, error_ = 0, size_ = 0, finite_size_ = 0, terms_ = 0, zeros_ = 0;
  bool positive_ = false, negative_ = false, unsure_ = false, over_ = false;
};

enum class Answer { no, yes, unsure };

/// Whether a < b, as far as their errors allow an answer.
inline Answer below(const Number& a, const Number& b) {
  // Values beyond the type's range are infinities there, which tie.
  const auto huge = [](const Number& x) { return x.over() || std::isinf(x.value); };
  const bool close = std::fabs(a.value - b.value) <= a.bound() + b.bound() ||
                     (huge(a) && huge(b) && (a.over() || b.over()) && a.value * b.value > 0);
  if (a.unsure || b.unsure || (close && !(a.exact() && b.exact()))) return Answer::unsure;
  return a.value < b.value ? Answer::yes : Answer::no;
}

}  // namespace qkv::fuzz
