#include <array>
#include <numbers>

#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

using Binary = Tensor (*)(const Tensor&, const Tensor&);
using Unary = Tensor (*)(const Tensor&);

/// A shape that broadcasts with this one.
Shape partner(Draw& draw, const Shape& shape) {
  const auto skipped =
      draw.chance(25) ? static_cast<std::size_t>(draw.index_below(shape.rank() + 1)) : 0;
  std::vector<Index> sizes(shape.begin() + skipped, shape.end());
  for (Index& size : sizes)
    if (draw.chance(15)) size = 1;
  return Shape(sizes);
}

template <class F>
OpDraw unary(const std::string& name, Unary run, F f, bool signs = false) {
  return [=](Builder& b) {
    b.add(name, {b.any(0)},
          {name + "($0)", [=](const In& x) { return run(x[0]); },
           [=](const Arrays& x) { return map(f, x[0]); }, signs});
  };
}

template <class F>
OpDraw binary(const std::string& name, Binary run, F f, bool signs = false) {
  return [=](Builder& b) {
    const std::size_t x = b.any(0), y = b.like(partner(b.draw, b.shape_of(x)));
    const bool swapped = b.draw.chance(30);
    b.add(name, swapped ? std::vector{y, x} : std::vector{x, y},
          {name + "($0, $1)", [=](const In& in) { return run(in[0], in[1]); },
           [=](const Arrays& in) { return map(f, in[0], in[1]); }, signs});
  };
}

/// A function of x given by its value and derivative, both computed to a few roundings.
template <class F>
auto smooth(F f) {
  return [=](const Scalar& x) {
    const auto [y, derivative] = f(x);
    return function_of(y, {{x, derivative}});
  };
}

Number number(Real value, const Scalar& like, bool unsure = false) {
  return {value, 0, like.dtype(), unsure};
}

/// x where it is above or below a bound, else the bound; the derivative is unsure where the side
/// is.
Scalar limited(const Scalar& x, double low, double high) {
  const Scalar least = constant_like(low, x), most = constant_like(high, x);
  if (std::isnan(x.value())) return function_of(x.number, {{x, number(0, x, true)}});
  const Answer under = below(x.number, least.number), over = below(most.number, x.number);
  const bool unsure = under == Answer::unsure || over == Answer::unsure;
  if (x.value() < low && !unsure) return least;
  if (x.value() > high && !unsure) return most;
  Scalar y = function_of(x.number, {{x, number(1, x, unsure)}});
  if (unsure) y.number.error += least.number.error + most.number.error;
  if (x.value() < low || x.value() > high) y.number.value = x.value() < low ? low : high;
  return y;
}

bool uncertain_sign(const Scalar& x) {
  return x.number.unsure || std::isnan(x.value()) ||
         (x.number.error > 0 && std::fabs(x.value()) <= x.number.bound());
}

Scalar absolute(const Scalar& x) {
  const bool unsure = uncertain_sign(x);
  const Real sign = x.value() > 0 ? 1 : x.value() < 0 ? -1 : 0;
  return function_of(abs(x.number), {{x, number(sign, x, unsure)}});
}

}  // namespace

Scalar positive_part(const Scalar& x) {
  const bool unsure = uncertain_sign(x);
  if (x.value() > 0 || unsure) return function_of(x.number, {{x, number(1, x, unsure)}});
  return Scalar{number(x.value() == 0 ? x.value() : 0, x, x.number.unsure)};
}

namespace {

Scalar power_of(const Scalar& x, double p) {
  const auto pow = [&](Real q) {
    const Number exponent = constant(q, x.dtype());
    const Real value = std::pow(x.value(), q), v = std::fabs(x.value());
    Number y = function(x.number, value, q == 0 ? 0 : q * std::pow(x.value(), q - 1), 3);
    if (v <= x.number.bound() && !x.number.exact()) {  // the derivative says little
      y.loosen(std::pow(2 * x.number.bound(), std::max<Real>(q, 0)) / y.format().unit);
      y.unsure = y.unsure || q < 1 || q != std::floor(q);  // of a negative x it may be NaN
    }
    if (v > 0 && std::isfinite(value)) y.loosen(times(exponent.error, value * std::log(v)));
    return after_overflow(y, x.number.over());
  };
  if (p == 0) return Scalar{number(1, x)};
  return function_of(pow(p), {{x, constant(p, x.dtype()) * pow(p - 1)}});
}

Scalar gelu_exact_of(const Scalar& x) {
  const Real v = x.value(), share = std::erfc(-v / std::numbers::sqrt2_v<Real>) / 2;
  const Real density =
      std::exp(-v * v / 2) * std::numbers::inv_sqrtpi_v<Real> / std::numbers::sqrt2_v<Real>;
  const bool infinite = std::isinf(v) || x.number.over();
  const bool unsure = x.number.unsure || (infinite && v < 0);
  const Real size = std::min<Real>(std::fabs(v), 1e30L);
  // The argument of erfc is rounded, which its tail magnifies; PyTorch's 1 + erf cancels there.
  const Number y = rounded(v * share, times(x.number.error, 2) + 4 * size, x.dtype(), unsure);
  const Number derivative =
      rounded(share + v * density, 8 * (1 + size * std::exp(-v * v / 4)) + 2 * x.number.error,
              x.dtype(), unsure || infinite || std::isnan(v));
  return function_of(y, {{x, derivative}});
}

auto trigonometric(bool cosine) {
  return [=](const Scalar& x) {
    const Real v = x.value(), s = std::sin(v), c = std::cos(v);
    // Infinity has none; large arguments are reduced.
    Number y = function(x.number, cosine ? c : s, cosine ? s : c);
    y.unsure = y.unsure || x.number.bound() > 0.01L;  // no longer linear
    return function_of(y, {{x, function(x.number, cosine ? -s : c, cosine ? c : s)}});
  };
}

Scalar erf_of(const Scalar& x) {
  const Real v = x.value();
  const Real slope = 2 * std::numbers::inv_sqrtpi_v<Real> * std::exp(-v * v);
  Number derivative = function(x.number, slope, 2 * v * slope, 3 + 2 * std::fabs(v * v));
  if (slope == 0) derivative.error = 0;
  return function_of(function(x.number, std::erf(v), slope), {{x, derivative}});
}

Scalar softplus_of(const Scalar& x) {
  const Real v = x.value(), share = 1 / (1 + std::exp(-v));
  const Real y = std::max<Real>(v, 0) + std::log1p(std::exp(-std::fabs(v)));
  return function_of(function(x.number, std::isnan(v) ? v : y, share), {{x, sigmoid(x.number)}});
}

Scalar larger(const Scalar& a, const Scalar& b, bool smaller) {
  const Scalar &low = smaller ? b : a, &high = smaller ? a : b;
  const bool nan = std::isnan(a.value()) || std::isnan(b.value());
  const bool unsure = nan || below(low.number, high.number) == Answer::unsure;
  if (!unsure && low.value() == high.value()) {
    const Number half = number(0.5L, a);
    return function_of(a.number, {{a, half}, {b, half}});
  }
  const bool first =
      std::isnan(a.value()) || (!std::isnan(b.value()) && low.value() > high.value());
  const Scalar& chosen = first ? a : b;
  return unsure ? either(chosen.number, std::array{a, b})
                : function_of(chosen.number, {{chosen, number(1, a)}});
}

/// 1 where the comparison holds, a constant.
template <class F>
OpDraw comparison(const std::string& name, Binary run, F holds) {
  return binary(name, run, [=](const Scalar& a, const Scalar& b) {
    const bool nan = std::isnan(a.value()) || std::isnan(b.value());
    const bool unsure = !nan && below(a.number, b.number) == Answer::unsure;
    return Scalar{number(holds(a.value(), b.value()) ? 1 : 0, a,
                         unsure || a.number.unsure || b.number.unsure)};
  });
}

void draw_affine(Builder& b) {
  const double scale = b.option({2, 1, -1, 0.5, 0, 0.1, -3, 1e-30}),
               shift = b.option({0, 1, -2, 0.3, 1e4});
  b.add("affine", {b.any(0)},
        {fmt::format("affine($0, {}, {})", text(scale), text(shift)),
         [=](const In& x) { return affine(x[0], scale, shift); },
         [=](const Arrays& x) -> Array { return Real{shift} + Real{scale} * x[0]; }});
}

/// A tensor and a scalar, by the same expression of the library's and of the oracle's types.
struct ScalarOperator {
  const char* code;
  Tensor (*run)(const Tensor&, const double&);
  Scalar (*oracle)(const Scalar&, const Scalar&);
};

template <class F>
constexpr ScalarOperator scalar_operator(const char* code, F f) {
  return {code, f, f};
}

constexpr ScalarOperator affine_operators[] = {
    scalar_operator("$0 + {}", [](const auto& x, const auto& v) { return x + v; }),
    scalar_operator("{} + $0", [](const auto& x, const auto& v) { return v + x; }),
    scalar_operator("$0 - {}", [](const auto& x, const auto& v) { return x - v; }),
    scalar_operator("{} - $0", [](const auto& x, const auto& v) { return v - x; }),
    scalar_operator("$0 * {}", [](const auto& x, const auto& v) { return x * v; }),
    scalar_operator("-$0", [](const auto& x, const auto&) { return -x; }),
};

constexpr ScalarOperator quotients[] = {
    scalar_operator("$0 / {}", [](const auto& x, const auto& v) { return x / v; }),
    scalar_operator("{} / $0", [](const auto& x, const auto& v) { return v / x; }),
};

void draw_operator(Builder& b, const std::string& name, std::span<const ScalarOperator> operators) {
  const double by = b.option({2, 1e-40, 1, -1, 0.5, 0, 0.1, -0.0, 1e-320, 3e38, 1e4});
  const ScalarOperator& op = operators[b.draw.below(static_cast<std::uint32_t>(operators.size()))];
  std::string code = op.code;
  if (const auto at = code.find("{}"); at != std::string::npos) code.replace(at, 2, text(by));
  b.add(name, {b.any(0)},
        {"(" + code + ")", [=](const In& x) { return op.run(x[0], by); },
         [=](const Arrays& x) {
           return map([=](const Scalar& s) { return op.oracle(s, constant_like(by, s)); }, x[0]);
         },
         true});
}

void draw_power(Builder& b) {
  const double p = b.option({2, 1, 3, 0, -1, 0.5, -0.5, -2, 1.5, 0.1, 7});
  b.add("power", {b.any(0)},
        {fmt::format("power($0, {})", text(p)), [=](const In& x) { return power(x[0], p); },
         [=](const Arrays& x) {
           return map([=](const Scalar& s) { return power_of(s, p); }, x[0]);
         }});
}

void draw_clamp(Builder& b) {
  const double low = b.option({-1, 0, -0.3, -1e38}), high = b.option({1, 0, 0.7, 1e38});
  b.add("clamp", {b.any(0)},
        {fmt::format("clamp($0, {}, {})", text(low), text(high)),
         [=](const In& x) { return clamp(x[0], low, high); },
         [=](const Arrays& x) {
           return map([=](const Scalar& s) { return limited(s, low, high); }, x[0]);
         }});
}

void draw_where(Builder& b) {
  const std::size_t x = b.any(0);
  const Shape shape = b.shape_of(x);
  const std::size_t y = b.like(partner(b.draw, shape)),
                    condition = b.whole(partner(b.draw, shape), 2);
  b.add("where", {condition, x, y},
        {"where($0, $1, $2)", [](const In& in) { return where(in[0], in[1], in[2]); },
         [](const Arrays& in) {
           return map([](const Scalar& c, const Scalar& p,
                         const Scalar& q) { return c.value() != 0 ? p : q; },
                      in[0], in[1], in[2]);
         },
         true});
}

void draw_masked_fill(Builder& b) {
  const std::size_t x = b.any(0);
  const std::size_t mask = b.whole(partner(b.draw, b.shape_of(x)), 2);
  const double value = b.option({0, -7, 0.5, -std::numeric_limits<double>::infinity(), 1e4});
  b.add("masked_fill", {x, mask},
        {fmt::format("masked_fill($0, $1, {})", text(value)),
         [=](const In& in) { return masked_fill(in[0], in[1], value); },
         [=](const Arrays& in) {
           return map([=](const Scalar& s,
                          const Scalar& m) { return m.value() != 0 ? constant_like(value, s) : s; },
                      in[0], in[1]);
         },
         true});
}

}  // namespace

const std::map<std::string, OpDraw>& elementwise_draws() {
  static const std::map<std::string, OpDraw> draws = {
      {"add", binary("add", qkv::add, std::plus(), true)},
      {"subtract", binary("subtract", qkv::subtract, std::minus(), true)},
      {"multiply", binary("multiply", qkv::multiply, std::multiplies(), true)},
      {"divide",
       [](Builder& b) {
         static const OpDraw tensors = binary("divide", qkv::divide, std::divides(), true);
         b.draw.chance(50) ? draw_operator(b, "divide", quotients) : tensors(b);
       }},
      {"affine",
       [](Builder& b) {
         b.draw.chance(60) ? draw_operator(b, "affine", affine_operators) : draw_affine(b);
       }},
      {"power", draw_power},
      {"sqrt", unary(
                   "sqrt", qkv::sqrt, [](const Scalar& x) { return sqrt(x); }, true)},
      {"abs", unary("abs", qkv::abs, absolute, true)},
      {"clamp", draw_clamp},
      {"exp", unary("exp", qkv::exp, [](const Scalar& x) { return exp(x); })},
      {"log", unary("log", qkv::log, [](const Scalar& x) { return log(x); })},
      {"tanh", unary(
                   "tanh", qkv::tanh, [](const Scalar& x) { return tanh(x); }, true)},
      {"sigmoid", unary("sigmoid", qkv::sigmoid, [](const Scalar& x) { return sigmoid(x); })},
      {"sin", unary("sin", qkv::sin, trigonometric(false))},
      {"cos", unary("cos", qkv::cos, trigonometric(true))},
      {"erf", unary("erf", qkv::erf, erf_of)},
      {"softplus", unary("softplus", qkv::softplus, softplus_of)},
      {"maximum", binary("maximum", qkv::maximum,
                         [](const Scalar& a, const Scalar& b) { return larger(a, b, false); })},
      {"minimum", binary("minimum", qkv::minimum,
                         [](const Scalar& a, const Scalar& b) { return larger(a, b, true); })},
      {"relu", unary("relu", qkv::relu, positive_part, true)},
      {"gelu", unary("gelu", qkv::gelu, [](const Scalar& x) { return gelu(x); })},
      {"gelu_exact", unary("gelu_exact", qkv::gelu_exact, gelu_exact_of)},
      {"silu", unary("silu", qkv::silu, silu)},
      {"equal", comparison("equal", qkv::equal, std::equal_to())},
      {"not_equal", comparison("not_equal", qkv::not_equal, std::not_equal_to())},
      {"less", comparison("less", qkv::less, std::less())},
      {"less_equal", comparison("less_equal", qkv::less_equal, std::less_equal())},
      {"greater", comparison("greater", qkv::greater, std::greater())},
      {"greater_equal", comparison("greater_equal", qkv::greater_equal, std::greater_equal())},
      {"where", draw_where},
      {"masked_fill", draw_masked_fill},
  };
  return draws;
}

}  // namespace qkv::fuzz
