#include "tests/ops/oracle.h"

namespace qkv::fuzz {

Scalar Tape::variable(const Number& number) {
  ends_.push_back(edges_.size());
  return {number, this, static_cast<std::uint32_t>(ends_.size() - 2)};
}

Scalar Tape::record(const Number& number) {
  return linked() ? variable(number) : Scalar{number};
}

bool Tape::has_infinite_derivative() const {
  return std::ranges::any_of(edges_, [](const Edge& edge) { return !edge.derivative.finite(); });
}

std::vector<Number> Tape::derivatives(std::span<const Scalar> outputs,
                                      std::span<const double> weights, DType dtype) const {
  const std::size_t count = ends_.size() - 1;
  std::vector<Sum> sums(count, Sum(dtype));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].tape) sums[outputs[i].position].add(constant(weights[i], dtype));
  std::vector<Number> result(count, Number{0, 0, dtype, false});
  for (std::size_t i = count; i-- > 0;) {
    const bool reached = !sums[i].empty();
    if (reached) result[i] = sums[i].number();
    for (std::size_t e = ends_[i]; e < ends_[i + 1]; ++e) {
      const auto& [position, derivative] = edges_[e];
      const auto zero = [](const Number& x) { return x.value == 0 && x.exact(); };
      const auto infinite = [](const Number& x) { return !x.finite() || x.over() || x.unsure; };
      // 0 times infinity or NaN is NaN, or, as in a tensor of which other elements matter, nothing.
      if ((zero(result[i]) && infinite(derivative)) || (zero(derivative) && infinite(result[i])))
        sums[position].add({0, 0, dtype, true});
      else if (reached)
        sums[position].add(result[i] * derivative);
    }
  }
  return result;
}

Scalar function_of(const Number& number, std::initializer_list<Partial> partials) {
  Tape* tape = nullptr;
  for (const auto& [x, derivative] : partials) {
    if (!x.tape) continue;
    tape = x.tape;
    tape->link(x, derivative);
  }
  return tape ? tape->record(number) : Scalar{number};
}

namespace {

Number one(DType dtype) {
  return {1, 0, dtype, false};
}

}  // namespace

Scalar constant_like(Real value, const Scalar& like) {
  return {constant(value, like.dtype())};
}

Scalar operator+(const Scalar& a, const Scalar& b) {
  return function_of(a.number + b.number, {{a, one(a.dtype())}, {b, one(a.dtype())}});
}

Scalar operator-(const Scalar& a, const Scalar& b) {
  return function_of(a.number - b.number, {{a, one(a.dtype())}, {b, -one(a.dtype())}});
}

Scalar operator-(const Scalar& a) {
  return function_of(-a.number, {{a, -one(a.dtype())}});
}

Scalar operator*(const Scalar& a, const Scalar& b) {
  return function_of(a.number * b.number, {{a, b.number}, {b, a.number}});
}

Scalar operator/(const Scalar& a, const Scalar& b) {
  const Number y = a.number / b.number;
  return function_of(y, {{a, one(a.dtype()) / b.number}, {b, -(y / b.number)}});
}

Scalar operator*(Real a, const Scalar& b) {
  return constant_like(a, b) * b;
}

Scalar operator+(Real a, const Scalar& b) {
  return constant_like(a, b) + b;
}

Scalar operator-(Real a, const Scalar& b) {
  return constant_like(a, b) - b;
}

Scalar operator/(Real a, const Scalar& b) {
  return constant_like(a, b) / b;
}

Scalar exp(const Scalar& x) {
  const Number y = exp(x.number);
  return function_of(y, {{x, y}});
}

Scalar log(const Scalar& x) {
  return function_of(log(x.number), {{x, one(x.dtype()) / x.number}});
}

Scalar sqrt(const Scalar& x) {
  const Number y = sqrt(x.number);
  return function_of(y, {{x, constant(0.5L, x.dtype()) / y}});
}

Scalar tanh(const Scalar& x) {
  const Number y = tanh(x.number);
  return function_of(y, {{x, one(x.dtype()) - y * y}});
}

Scalar sigmoid(const Scalar& x) {
  const Number y = sigmoid(x.number);
  return function_of(y, {{x, y * (one(x.dtype()) - y)}});
}

Scalar fixed(const Scalar& x) {
  return {x.number};
}

Scalar function_of(const Number& number, Scalars terms, const Number& derivative) {
  Tape* tape = nullptr;
  for (const Scalar& x : terms)
    if (x.tape) (tape = x.tape)->link(x, derivative);
  return tape ? tape->record(number) : Scalar{number};
}

Scalar sum(Scalars terms, DType dtype) {
  Sum total(dtype);
  for (const Scalar& x : terms) total.add(x.number);
  return function_of(total.number(), terms, one(dtype));
}

Scalar dot(Scalars a, Scalars b, DType dtype) {
  Sum total(dtype);
  Tape* tape = nullptr;
  for (std::size_t i = 0; i < a.size(); ++i) {
    total.add(a[i].number * b[i].number);
    for (const auto& [x, by] : {std::pair(&a[i], &b[i]), std::pair(&b[i], &a[i])})
      if (x->tape) (tape = x->tape)->link(*x, by->number);
  }
  return tape ? tape->record(total.number()) : Scalar{total.number()};
}

Scalar mean(Scalars terms, Real count, DType dtype) {
  const Number none{0, 0, dtype, false},
      share = count > 0 ? rounded(1 / count, 0, dtype, false) : none;
  Sum total(dtype);
  for (const Scalar& x : terms) total.add(x.number);
  Number sum = total.number();
  sum.unsure = sum.unsure || sum.over();
  return function_of(count > 0 ? sum * share : none, terms, share);
}

Scalar mean(Scalars terms, DType dtype) {
  return mean(terms, static_cast<Real>(terms.size()), dtype);
}

Scalar either(Number chosen, Scalars candidates) {
  for (const Scalar& x : candidates) {
    chosen.error = std::max(chosen.error, x.number.error);
    chosen.unsure = chosen.unsure || x.number.unsure;
  }
  return function_of(chosen, candidates, Number{1, 0, chosen.dtype, true});
}

Scalar unchanging(const Number& number, Scalars operands) {
  return function_of(number, operands, Number{0, 0, number.dtype, false});
}

Scalar largest(Scalars terms, bool smallest) {
  const auto sign = [=](const Scalar& x) { return smallest ? -x.number : x.number; };
  std::size_t best = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (std::isnan(terms[i].value())) {
      best = i;
      break;
    }
    if (sign(terms[i]).value > sign(terms[best]).value) best = i;
  }
  Number derivative = one(terms[best].dtype());
  for (std::size_t i = 0; i < terms.size(); ++i)
    if (i != best && below(sign(terms[i]), sign(terms[best])) == Answer::unsure)
      derivative.unsure = true;
  if (derivative.unsure) return either(terms[best].number, terms);
  return function_of(terms[best].number, {{terms[best], derivative}});
}

Scalar shift_of(Scalars x, DType dtype) {
  Real most = -std::numeric_limits<Real>::infinity();
  bool unsure = false;
  for (const Scalar& s : x) {
    if (std::isnan(s.value()) || s.value() > most) most = s.value();
    if (std::isnan(most)) break;
    unsure = unsure || s.number.unsure;
  }
  return {Number{most, 0, dtype, unsure}};
}

std::vector<Scalar> softmax(Scalars x, DType dtype) {
  const Scalar shift = shift_of(x, dtype);
  std::vector<Scalar> y(x.size(), Scalar{Number{0, 0, dtype, shift.number.unsure}});
  if (shift.value() == -std::numeric_limits<Real>::infinity()) {
    for (Scalar& s : y) s = unchanging(s.number, x);
    return y;
  }
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = exp(x[i] - shift);
  const Scalar total = sum(y, dtype);
  for (Scalar& s : y) s = s / total;
  return y;
}

Scalar log_total(Scalars x, const Scalar& max, DType dtype) {
  std::vector<Scalar> powers;
  for (const Scalar& s : x) powers.push_back(exp(s - max));
  return log(sum(powers, dtype));
}

}  // namespace qkv::fuzz
