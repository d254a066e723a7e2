#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

const char* code_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::none:
      return "Reduction::none";
    case Reduction::sum:
      return "Reduction::sum";
    case Reduction::mean:
      break;
  }
  return "Reduction::mean";
}

Reduction reduction_of(Builder& b) {
  return b.draw.pick({Reduction::mean, Reduction::none, Reduction::sum, Reduction::mean});
}

struct CrossEntropy {
  Indices targets;
  double smoothing = 0;
  std::vector<double> weights;  ///< empty: all 1
  Index ignored = -1;
  Reduction reduction = Reduction::mean;

  /// weight (smoothing / classes + [1 - smoothing for the target])
  static Scalar share(Real weight, bool is_target, std::size_t classes, double smoothing,
                      DType dtype) {
    const auto known = [=](Real v) { return Scalar{constant(v, dtype)}; };
    const Scalar kept = known(smoothing), spread = kept / known(static_cast<Real>(classes));
    Scalar result = known(weight) * (is_target ? spread + (known(1) - kept) : spread);
    if (smoothing > 0) result.number.loosen(result.value());  // exact in this order alone
    return result;
  }

  Real weight(std::size_t c) const { return weights.empty() ? 1 : weights[c]; }

  Array operator()(const Array& x) const {
    const DType dtype = dtype_of(x);
    const Scalar nothing = zero(dtype);
    std::vector<Scalar> losses;
    Array rows(sizes_of(targets.shape()), nothing);
    Real total = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const Index target = targets.data()[r];
      const Scalars logits = row_of(x, r);
      const std::size_t first = losses.size();
      if (target < 0 || target == ignored) {
        losses.push_back(unchanging(nothing.number, logits));
      } else {
        const Scalar max = shift_of(logits, dtype), total_log = log_total(logits, max, dtype);
        for (std::size_t c = 0; c < logits.size(); ++c) {
          const Scalar part =
              share(weight(c), std::cmp_equal(c, target), logits.size(), smoothing, dtype);
          const Scalar loss = total_log - (logits[c] - max);
          losses.push_back(part.value() == 0   ? unchanging(nothing.number, logits)
                           : part.value() == 1 ? loss
                                               : part * loss);
        }
        total += weight(static_cast<std::size_t>(target));
      }
      rows.flat(r) = sum(Scalars(losses).subspan(first), dtype);
    }
    if (reduction == Reduction::none) return rows;
    if (reduction == Reduction::sum) return sum(losses, dtype);
    return mean(losses, losses.empty() ? 0 : total, dtype);
  }
};

void draw_cross_entropy(Builder& b) {
  std::size_t x = b.any(1, 3);
  const Shape shape = b.shape_of(x);
  const Index classes = shape.dim(-1);
  if (classes == 0) return;
  // Large logits with small differences.
  if (b.draw.chance(20)) x = b.within(shape, 9999, 10001);
  const Shape rows(shape.sizes().first(static_cast<std::size_t>(shape.rank() - 1)));
  CrossEntropy loss;
  loss.targets = b.indices(rows, classes, b.draw.chance(30) ? -1 : 0);
  if (b.draw.chance(50)) {
    b.add("cross_entropy", {x},
          {fmt::format("cross_entropy($0, {})", text(loss.targets)),
           [=](const In& in) { return cross_entropy(in[0], loss.targets); },
           [=](const Arrays& in) { return loss(in[0]); }});
    return;
  }
  loss.smoothing = b.option({0, 0.1, 0.5});
  if (b.draw.chance(60)) {
    const Random random(b.draw.below(1000), Purpose::testing);
    for (Index c = 0; c < classes; ++c) {
      const auto bits = random.bits(static_cast<std::uint64_t>(c));
      loss.weights.push_back(bits % 4 * 0.5);  // 0 among them
    }
  }
  if (b.draw.chance(30)) loss.ignored = b.draw.index_below(classes);
  loss.reduction = reduction_of(b);
  std::string weights = "{}";
  if (!loss.weights.empty())
    weights = fmt::format("Tensor::from({}, {{{}}})", text(loss.weights), classes);
  b.add("cross_entropy", {x},
        {fmt::format("cross_entropy($0, {}, {{.label_smoothing = {}, .class_weights = {}, "
                     ".ignore_index = {}, .reduction = {}}})",
                     text(loss.targets), text(loss.smoothing), weights, loss.ignored,
                     code_of(loss.reduction)),
         [=](const In& in) {
           CrossEntropyOptions options{.label_smoothing = loss.smoothing,
                                       .class_weights = {},
                                       .ignore_index = loss.ignored,
                                       .reduction = loss.reduction};
           if (!loss.weights.empty()) options.class_weights = Tensor::from(loss.weights, {classes});
           return cross_entropy(in[0], loss.targets, options);
         },
         [=](const Arrays& in) { return loss(in[0]); }});
}

/// The terms of a loss, their sum or their mean.
Array joined(const Array& terms, Reduction reduction) {
  if (reduction == Reduction::none) return terms;
  const DType dtype = dtype_of(terms);
  return reduction == Reduction::sum ? sum(Scalars(terms), dtype) : mean(Scalars(terms), dtype);
}

Number value(Real v, const Scalar& like) {
  return constant(v, like.dtype());
}

/// log p, but at least -100.
Number limited_log(const Number& p) {
  const Number y = log(p);
  return y.value < -100 ? Number{-100, 0, p.dtype, p.unsure} : y;
}

Scalar binary_term(const Scalar& p, const Scalar& t) {
  const Number one = value(1, p), q = one - p.number;
  const Number yes = limited_log(p.number), no = limited_log(q);
  const Number y = -(t.number * yes + (one - t.number) * no);
  Number spread = p.number * q;
  if (spread.value < 1e-12L) spread = value(1e-12L, p);
  Number by_target = no - yes;  // at certainty PyTorch's is infinite
  by_target.unsure = by_target.unsure || p.value() == 0 || p.value() == 1;
  return function_of(y, {{p, (p.number - t.number) / spread}, {t, by_target}});
}

void draw_binary_cross_entropy(Builder& b) {
  const Reduction reduction = reduction_of(b);
  const Shape shape = b.shape(0, 3);
  b.add("binary_cross_entropy", {b.within(shape, 0, 1), b.within(shape, 0, 1)},
        {fmt::format("binary_cross_entropy($0, $1, {})", code_of(reduction)),
         [=](const In& x) { return binary_cross_entropy(x[0], x[1], reduction); },
         [=](const Arrays& x) { return joined(map(binary_term, x[0], x[1]), reduction); }});
}

/// (1 - t) x + log(1 + exp(-x))
Scalar logit_term(const Scalar& x, const Scalar& t) {
  const Number one = value(1, x), size = abs(x.number);
  // log(1 + exp(-|x|)) lies between 0 and log 2 and is computed without cancellation.
  const Number rest = function(size, std::log1p(std::exp(-size.value)), 1);
  const Number linear = x.value() > 0 ? (one - t.number) * x.number : -(t.number * x.number);
  Number y = linear + rest;
  // max(x, 0) - x t, as it may be computed.
  if (x.number.finite()) y.loosen(times(x.value(), t.value()) + std::fabs(x.value()));
  if (std::isinf(x.value())) {
    // Infinite where the target contradicts the logit, 0 where it does not.
    const Real wrong = x.value() < 0 ? t.value() : 1 - t.value();
    y = {wrong == 0 ? 0 : std::numeric_limits<Real>::infinity(), 0, x.dtype(),
         x.number.unsure || !t.number.exact()};
  }
  Number by_t = -x.number;
  return function_of(y, {{x, sigmoid(x.number) - t.number}, {t, by_t}});
}

/// (1 - t) log(1 + exp(x)) + w t log(1 + exp(-x))
Scalar weighted_logit_term(const Scalar& x, const Scalar& t, const Scalar& w) {
  const Number one = value(1, x), size = abs(x.number);
  const Number rest = function(size, std::log1p(std::exp(-size.value)), 1);
  const Number yes = x.value() < 0 ? size + rest : rest, no = x.value() < 0 ? rest : size + rest;
  const Number positive = w.number * t.number, negative = one - t.number;
  const Number by_x = negative * sigmoid(x.number) - positive * sigmoid(-x.number);
  Number y = positive * yes + negative * no, by_t = w.number * yes - no;
  // Also as (1 - t) x + (1 + (w - 1) t) log(1 + exp(-x)).
  const Real cancelled = (1 + w.value()) * std::fabs(x.value());
  y.loosen(cancelled);
  by_t.loosen(cancelled);
  return function_of(y, {{x, by_x}, {t, by_t}});
}

void draw_weighted_logits(Builder& b, Reduction reduction) {
  const Shape shape = b.shape(0, 3);
  std::vector<Index> sizes(shape.begin() + b.draw.index_below(shape.rank() + 1), shape.end());
  for (Index& size : sizes)
    if (b.draw.chance(20)) size = 1;
  const double most = b.option({4, 100});
  b.add("binary_cross_entropy_with_logits",
        {b.within(shape, -most, most), b.within(shape, 0, 1), b.within(Shape(sizes), 0, 3)},
        {fmt::format("binary_cross_entropy_with_logits($0, $1, {}, $2)", code_of(reduction)),
         [=](const In& in) {
           return binary_cross_entropy_with_logits(in[0], in[1], reduction, in[2]);
         },
         [=](const Arrays& in) {
           return joined(map(weighted_logit_term, in[0], in[1], in[2]), reduction);
         },
         false, true});
}

void draw_with_logits(Builder& b) {
  const Reduction reduction = reduction_of(b);
  if (b.draw.chance(40)) return draw_weighted_logits(b, reduction);
  const std::size_t x = b.any(0, 3);
  b.add("binary_cross_entropy_with_logits", {x, b.within(b.shape_of(x), 0, 1)},
        {fmt::format("binary_cross_entropy_with_logits($0, $1, {})", code_of(reduction)),
         [=](const In& in) { return binary_cross_entropy_with_logits(in[0], in[1], reduction); },
         [=](const Arrays& in) { return joined(map(logit_term, in[0], in[1]), reduction); }});
}

void draw_mean_squared_error(Builder& b) {
  const Reduction reduction = reduction_of(b);
  const std::size_t x = b.any(0, 3);
  b.add("mean_squared_error", {x, b.like(b.shape_of(x))},
        {fmt::format("mean_squared_error($0, $1, {})", code_of(reduction)),
         [=](const In& in) { return mean_squared_error(in[0], in[1], reduction); },
         [=](const Arrays& in) {
           const Array difference = in[0] - in[1];
           return joined(difference * difference, reduction);
         }});
}

}  // namespace

const std::map<std::string, OpDraw>& loss_draws() {
  static const std::map<std::string, OpDraw> draws = {
      {"cross_entropy", draw_cross_entropy},
      {"binary_cross_entropy", draw_binary_cross_entropy},
      {"binary_cross_entropy_with_logits", draw_with_logits},
      {"mean_squared_error", draw_mean_squared_error},
  };
  return draws;
}

}  // namespace qkv::fuzz
