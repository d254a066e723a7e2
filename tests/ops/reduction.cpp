#include <fmt/ranges.h>

#include <numeric>

#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

/// Axes to reduce and `keep`, and the axes counted from the first.
struct Choice {
  std::vector<int> axes;
  bool keep;
  std::vector<std::size_t> reduced;

  Choice(Builder& b, const Shape& shape) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (!b.draw.chance(45)) continue;
      axes.push_back(b.draw.chance(30) ? axis - shape.rank() : axis);
      reduced.push_back(static_cast<std::size_t>(axis));
    }
    keep = b.draw.chance(35);
    if (!axes.empty()) return;
    reduced.resize(static_cast<std::size_t>(shape.rank()));
    std::iota(reduced.begin(), reduced.end(), std::size_t{0});
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
    for (const std::size_t axis : reduced) count *= shape[static_cast<int>(axis)];
    return count;
  }
};

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
           [=](const Arrays& in) { return reduce_axes(in[0], choice.reduced, choice.keep, f); }});
  };
}

Scalar log_sum_exp(Scalars x, DType dtype) {
  const Scalar max = shift_of(x, dtype);
  // -inf: nothing to sum. inf: the derivatives are 0, or NaN where inf - inf stands.
  if (std::isinf(max.value()))
    return max.value() < 0 ? max : function_of(max.number, x, Number{0, 0, dtype, true});
  return max + log_total(x, max, dtype);
}

Scalar variance_of(Scalars x, DType dtype, Index correction) {
  const Scalar center = mean(x, dtype);
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
           return reduce_axes(in[0], choice.reduced, choice.keep, [=](Scalars s, DType dtype) {
             return variance_of(s, dtype, correction);
           });
         }});
}

void draw_cumulative_sum(Builder& b) {
  const std::size_t x = b.any(1);
  const int axis = b.axis(b.shape_of(x));
  b.add("cumulative_sum", {x},
        {fmt::format("cumulative_sum($0, {})", axis),
         [=](const In& in) { return cumulative_sum(in[0], axis); },
         [=](const Arrays& in) {
           return map_axis(in[0], axis_in(in[0], axis), [&](Scalars s) {
             std::vector<Scalar> sums;
             for (std::size_t i = 1; i <= s.size(); ++i)
               sums.push_back(sum(s.first(i), dtype_of(in[0])));
             return sums;
           });
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
           return reduce_axes(in[0], choice.reduced, choice.keep, [](Scalars s, DType dtype) {
             return Scalar{Number{static_cast<Real>(descending(s)[0]), 0, dtype, uncertain(s)}};
           });
         }});
}

void draw_topk(Builder& b) {
  const std::size_t x = b.any(1);
  const Shape from = b.shape_of(x);
  const int axis = b.axis(from);
  const Index count = b.draw.index_below(from.dim(axis) + 1);
  const bool indices = b.draw.chance(25);
  b.add("topk", {x},
        {fmt::format("topk($0, {}, {}).{}", count, axis, indices ? "indices" : "values"),
         [=](const In& in) {
           const TopK top = topk(in[0], count, axis);
           return indices ? as_tensor(top.indices, in[0].dtype()) : top.values;
         },
         [=](const Arrays& in) {
           return map_axis(
               in[0], axis_in(in[0], axis),
               [&](Scalars column) {
                 const bool unsure = uncertain(column);
                 std::vector<std::size_t> order = descending(column);
                 order.resize(static_cast<std::size_t>(count));
                 std::vector<Scalar> top;
                 for (const std::size_t i : order)
                   if (indices)
                     top.push_back({Number{static_cast<Real>(i), 0, dtype_of(in[0]), unsure}});
                   else
                     top.push_back(unsure ? either(column[i].number, column) : column[i]);
                 return top;
               },
               static_cast<std::size_t>(count));
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
             Array y(sizes_of({shape[0], shape[2]}));
             for (std::size_t n = 0; n < y.shape(0); ++n)
               xt::view(y, n) =
                   reduce_axes(xt::view(in[0], n, xt::range(0, lengths.data()[n])), {0}, false, f);
             return y;
           }});
  };
}

}  // namespace

const std::map<std::string, OpDraw>& reduction_draws() {
  const auto mean_of = [](Scalars x, DType dtype) { return mean(x, dtype); };
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
