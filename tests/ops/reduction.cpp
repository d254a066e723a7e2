#include <numeric>

#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

using Reduced = std::array<bool, Shape::max_rank>;
using Scalars = std::span<const Scalar>;

/// Axes to reduce, `keep` included, in C++ and as a table.
struct Choice {
  std::vector<int> axes;
  bool keep;
  Reduced reduced{};

  Choice(Builder& b, const Shape& shape) {
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (b.draw.chance(45)) axes.push_back(b.draw.chance(30) ? axis - shape.rank() : axis);
    keep = b.draw.chance(35);
    for (const int axis : axes)
      reduced[static_cast<std::size_t>(axis < 0 ? axis + shape.rank() : axis)] = true;
    if (axes.empty()) std::fill_n(reduced.begin(), shape.rank(), true);
  }
  Axes all() const {
    if (axes.empty()) return {};
    if (axes.size() == 1) return axes[0];
    if (axes.size() == 2) return {axes[0], axes[1]};
    if (axes.size() == 3) return {axes[0], axes[1], axes[2]};
    return {axes[0], axes[1], axes[2], axes[3]};
  }
  std::string code() const { return fmt::format("{{{}}}, {}", fmt::join(axes, ", "), text(keep)); }
  Index terms(const Shape& shape) const {
    Index count = 1;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (reduced[static_cast<std::size_t>(axis)]) count *= shape[axis];
    return count;
  }
};

template <class F>
Array reduce(const Array& x, const Choice& choice, F f) {
  const DType dtype = dtype_in({x});
  Array y{reduced_shape(x.shape, choice.reduced, choice.keep), {}};
  for (const auto& column : columns(x.shape, choice.reduced))
    y.scalars.push_back(f(at(x, column), dtype));
  return y;
}

using Op = Tensor (*)(const Tensor&, const Axes&, bool);

OpDraw reduction(const std::string& name, Op run, Scalar (*f)(Scalars, DType),
                 bool needs_terms = false) {
  return [=](Builder& b) {
    std::size_t x = b.any(0);
    const Choice choice(b, b.shape_of(x));
    const Shape& shape = b.shape_of(x);
    if (needs_terms && choice.terms(shape) == 0) return;
    b.add(name, {x},
          {fmt::format("{}($0, {})", name, choice.code()),
           [=](const In& in) { return run(in[0], choice.all(), choice.keep); },
           [=](const Arrays& in) { return reduce(in[0], choice, f); }});
  };
}

Scalar mean_of(Scalars x, DType dtype) {
  return mean(x, static_cast<Real>(x.size()), dtype);
}

Scalar log_sum_exp(Scalars x, DType dtype) {
  const Scalar max = shift_of(x, dtype);
  if (std::isinf(max.value())) {
    // -inf: nothing to sum. inf: the derivatives are 0, or NaN where inf - inf stands.
    Scalar y = max;
    if (max.value() > 0) {
      Tape* tape = nullptr;
      for (const Scalar& s : x)
        if (s.tape) (tape = s.tape)->link(s, Number{0, 0, dtype, true});
      if (tape) y = tape->record(max.number);
    }
    return y;
  }
  return fixed(max) + log_total(x, fixed(max), dtype);
}

Scalar variance_of(Scalars x, DType dtype, Index correction) {
  const Scalar center = mean_of(x, dtype);
  std::vector<Scalar> squares;
  for (const Scalar& s : x) {
    const Scalar d = s - center;
    squares.push_back(d * d);
  }
  return mean(squares, static_cast<Real>(std::ssize(x) - correction), dtype);
}

void draw_variance(Builder& b) {
  const std::size_t x = b.any(0);
  const Choice choice(b, b.shape_of(x));
  const Index correction = b.draw.index_below(2);
  if (choice.terms(b.shape_of(x)) <= correction) return;
  b.add("variance", {x},
        {fmt::format("variance($0, {}, {})", choice.code(), correction),
         [=](const In& in) { return variance(in[0], choice.all(), choice.keep, correction); },
         [=](const Arrays& in) {
           return reduce(in[0], choice,
                         [=](Scalars s, DType dtype) { return variance_of(s, dtype, correction); });
         }});
}

void draw_cumulative_sum(Builder& b) {
  const std::size_t x = b.any(1);
  const int axis = b.axis(b.shape_of(x));
  b.add("cumulative_sum", {x},
        {fmt::format("cumulative_sum($0, {})", axis),
         [=](const In& in) { return cumulative_sum(in[0], axis); },
         [=](const Arrays& in) {
           Reduced reduced{};
           reduced[static_cast<std::size_t>(axis < 0 ? axis + in[0].shape.rank() : axis)] = true;
           Array y = in[0];
           for (const auto& column : columns(in[0].shape, reduced))
             for (std::size_t i = 1; i <= column.size(); ++i)
               y[column[i - 1]] = sum(at(in[0], std::span(column).first(i)), dtype_in(in));
           return y;
         }});
}

/// Positions of the largest of `x`, largest first, of equal ones the first.
std::vector<std::size_t> descending(Scalars x) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t i, std::size_t j) {
    const bool nan = std::isnan(x[i].value());
    return nan != std::isnan(x[j].value()) ? nan : x[i].value() > x[j].value();
  });
  return order;
}

/// Whether errors may change an order.
bool uncertain(Scalars x) {
  return std::ranges::any_of(x, [](const Scalar& s) { return !s.number.exact(); });
}

Tensor as_tensor(const Indices& ids, DType dtype) {
  return Tensor::from(std::vector<double>(ids.data().begin(), ids.data().end()), ids.shape(),
                      dtype);
}

void draw_argmax(Builder& b) {
  const std::size_t x = b.any(0);
  const Choice choice(b, b.shape_of(x));
  if (choice.terms(b.shape_of(x)) == 0) return;
  b.add("argmax", {x},
        {fmt::format("argmax($0, {})", choice.code()),
         [=](const In& in) {
           return as_tensor(argmax(in[0], choice.all(), choice.keep), in[0].dtype());
         },
         [=](const Arrays& in) {
           return reduce(in[0], choice, [](Scalars s, DType dtype) {
             return Scalar{Number{static_cast<Real>(descending(s)[0]), 0, dtype, uncertain(s)}};
           });
         }});
}

void draw_topk(Builder& b) {
  const std::size_t x = b.any(1);
  const Shape from = b.shape_of(x);
  const int given = b.axis(from), axis = given < 0 ? given + from.rank() : given;
  const Index count = b.draw.index_below(from[axis] + 1);
  const bool indices = b.draw.chance(25);
  b.add("topk", {x},
        {fmt::format("topk($0, {}, {}).{}", count, given, indices ? "indices" : "values"),
         [=](const In& in) {
           const TopK top = topk(in[0], count, given);
           return indices ? as_tensor(top.indices, in[0].dtype()) : top.values;
         },
         [=](const Arrays& in) {
           Reduced reduced{};
           reduced[static_cast<std::size_t>(axis)] = true;
           std::vector<Index> sizes(from.begin(), from.end());
           sizes[static_cast<std::size_t>(axis)] = count;
           Array y{Shape(sizes), {}};
           y.scalars.resize(static_cast<std::size_t>(y.size()));
           const auto to = columns(y.shape, reduced), all = columns(from, reduced);
           for (std::size_t c = 0; c < to.size(); ++c) {
             const auto column = at(in[0], all[c]);
             const auto order = descending(column);
             for (std::size_t i = 0; i < to[c].size(); ++i) {
               Scalar& s = y[to[c][i]];
               if (indices) {
                 s = {Number{static_cast<Real>(order[i]), 0, dtype_in(in), uncertain(column)}};
                 continue;
               }
               s = column[order[i]];
               if (uncertain(column)) s = either(s.number, column);
             }
           }
           return y;
         }});
}

/// f of the first rows of each sequence, for each column.
template <class F>
OpDraw pooling(const std::string& name, Tensor (*run)(const Tensor&, const Indices&), F f) {
  return [=](Builder& b) {
    const Shape shape{b.size(9), b.size(17), b.size(33)};
    const std::size_t x = b.like(shape);
    const Indices lengths = b.indices({shape[0]}, shape[1] + 1);
    b.add(name, {x},
          {fmt::format("{}($0, {})", name, text(lengths)),
           [=](const In& in) { return run(in[0], lengths); },
           [=](const Arrays& in) {
             Array y{{shape[0], shape[2]}, {}};
             for (Index n = 0; n < shape[0]; ++n)
               for (Index d = 0; d < shape[2]; ++d) {
                 std::vector<Scalar> column;
                 for (Index t = 0; t < lengths.data()[static_cast<std::size_t>(n)]; ++t)
                   column.push_back(in[0][(n * shape[1] + t) * shape[2] + d]);
                 y.scalars.push_back(f(column, dtype_in(in)));
               }
             return y;
           }});
  };
}

}  // namespace

const std::map<std::string, OpDraw>& reduction_draws() {
  const auto max_of = [](Scalars x, DType) { return largest(x); };
  const auto min_of = [](Scalars x, DType) { return largest(x, true); };
  const auto max_or_zero = [](Scalars x, DType dtype) {
    return x.empty() ? zero(dtype) : largest(x);
  };
  static const std::map<std::string, OpDraw> draws = {
      {"sum", reduction("sum", qkv::sum, sum)},
      {"mean", reduction("mean", qkv::mean, mean_of)},
      {"variance", draw_variance},
      {"argmax", draw_argmax},
      {"topk", draw_topk},
      {"max", reduction("max", qkv::max, max_of, true)},
      {"min", reduction("min", qkv::min, min_of, true)},
      {"logsumexp", reduction("logsumexp", qkv::logsumexp, log_sum_exp)},
      {"cumulative_sum", draw_cumulative_sum},
      {"masked_mean", pooling("masked_mean", qkv::masked_mean, mean_of)},
      {"masked_max", pooling("masked_max", qkv::masked_max, max_or_zero)},
  };
  return draws;
}

}  // namespace qkv::fuzz
