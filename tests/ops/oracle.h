#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/shape.h"
#include "core/xtensor.h"
#include "tests/ops/number.h"

namespace qkv::fuzz {

class Tape;

/// A scalar of the oracle: a number and, unless it is a constant, where the tape recorded it.
struct Scalar {
  Number number;
  Tape* tape = nullptr;
  std::uint32_t position = 0;

  DType dtype() const { return number.dtype; }
  Real value() const { return number.value; }
};

/// One operand's share in a scalar: the derivative by it.
struct Edge {
  std::uint32_t position;
  Number derivative;
};

/// Reverse-mode automatic differentiation of single scalars: independent of the library's kernels,
/// of its backward functions and of its graph.
class Tape {
 public:
  Scalar variable(const Number& number);
  /// A scalar computed from others, by the derivatives that were `link`ed since the last one.
  Scalar record(const Number& number);
  void link(const Scalar& x, const Number& derivative) {
    if (x.tape) edges_.push_back({x.position, derivative});
  }
  bool has_infinite_derivative() const;
  bool linked() const { return edges_.size() > ends_.back(); }

  /// Derivatives of sum(weights outputs) by every variable recorded so far.
  std::vector<Number> derivatives(std::span<const Scalar> outputs, std::span<const double> weights,
                                  DType dtype) const;

 private:
  std::vector<std::size_t> ends_ = {0};  ///< of the edges of each scalar, after a leading 0
  std::vector<Edge> edges_;
};

/// An array of scalars, row-major: the formulas of ops are expressions of xtensor.
using Array = xt::xarray<Scalar>;
using Arrays = std::vector<Array>;
/// An array's shape in xtensor.
using Sizes = Array::shape_type;
/// The scalars along an axis, or those that a reduction joins.
using Scalars = std::span<const Scalar>;

inline Sizes sizes_of(const Shape& shape) {
  return {shape.begin(), shape.end()};
}
inline Shape shape_of(const Array& x) {
  return Shape(std::vector<Index>(x.shape().begin(), x.shape().end()));
}
/// The type under test; an array without elements has none to get wrong.
inline DType dtype_of(const Array& x) {
  return x.size() > 0 ? x.flat(0).dtype() : DType::float32;
}

// Scalar arithmetic
// ----------------------------------------------------------------------------------------------

/// A function of several scalars, from its number and its derivatives.
struct Partial {
  const Scalar& by;
  Number derivative;
};
Scalar function_of(const Number& number, std::initializer_list<Partial> partials);

Scalar constant_like(Real value, const Scalar& like);
Scalar operator+(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a);
Scalar operator*(const Scalar& a, const Scalar& b);
Scalar operator/(const Scalar& a, const Scalar& b);
Scalar operator*(Real a, const Scalar& b);
Scalar operator+(Real a, const Scalar& b);
Scalar operator-(Real a, const Scalar& b);
Scalar operator/(Real a, const Scalar& b);
Scalar exp(const Scalar& x);
Scalar log(const Scalar& x);
Scalar sqrt(const Scalar& x);
Scalar tanh(const Scalar& x);
Scalar sigmoid(const Scalar& x);
/// x without its derivative, of which the result does not depend.
Scalar fixed(const Scalar& x);

/// A number whose derivative by each of the terms is the same.
Scalar function_of(const Number& number, Scalars terms, const Number& derivative);
/// The sum; `dtype` is its type where there are no terms.
Scalar sum(Scalars terms, DType dtype);
/// sum(a[i] b[i])
Scalar dot(Scalars a, Scalars b, DType dtype);
/// The sum divided by a count, with no overflow in between.
Scalar mean(Scalars terms, Real count, DType dtype);
/// The sum divided by the number of terms.
Scalar mean(Scalars terms, DType dtype);
/// A number whose derivative by each operand is 0, of which an infinite gradient from above may
/// make NaN.
Scalar unchanging(const Number& number, Scalars operands);
/// One of the candidates, whose errors leave open which.
Scalar either(Number chosen, Scalars candidates);
/// The largest, or the smallest, of the scalars.
Scalar largest(Scalars terms, bool smallest = false);
/// exp(x - max) / sum; zeros where all are -inf.
std::vector<Scalar> softmax(Scalars x, DType dtype);
/// log(sum(exp(x - max))): the logarithm of what softmax divides by.
Scalar log_total(Scalars x, const Scalar& max, DType dtype);
/// The largest value, as a constant without error: what it is cancels out.
Scalar shift_of(Scalars x, DType dtype);

}  // namespace qkv::fuzz
