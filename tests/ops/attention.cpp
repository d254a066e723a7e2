#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

struct Attention {
  AttentionMask mask;
  AttentionOptions options;

  AttentionMask biased(const Tensor& bias) const { return {mask.key_lengths, mask.causal, bias}; }

  /// Keys of sequence n that are not padding. Those that are hidden all the same count 0 times,
  /// which matters where a gradient is infinite.
  std::size_t length(std::size_t n, std::size_t keys) const {
    return mask.key_lengths.size() ? static_cast<std::size_t>(mask.key_lengths.data()[n]) : keys;
  }
  /// Keys that query t of sequence n may attend to.
  std::size_t visible(std::size_t n, std::size_t t, std::size_t queries, std::size_t keys) const {
    const std::size_t all = length(n, keys), before = t + 1 + keys;
    return mask.causal ? std::min(before - std::min(before, queries), all) : all;
  }
  /// x [B, T, D] as [B, H, T, D / H].
  Array by_head(Array x) const {
    const auto heads = static_cast<std::size_t>(options.heads);
    x.reshape({x.shape(0), x.shape(1), heads, x.shape(2) / heads});
    return swapped(x, 1, 2);
  }

  static bool finite(const Array& x, std::size_t n) {
    const Array sequence = xt::view(x, n);
    return std::ranges::all_of(
        Scalars(sequence), [](const Scalar& s) { return s.number.finite() && !s.number.over(); });
  }

  /// Weights of one query: of keys that it may attend to, of later ones, and of padding.
  static std::vector<Scalar> softmax_of(Scalars scores, Scalars later, std::size_t keys,
                                        bool biased, DType dtype) {
    std::vector<Scalar> weights = softmax(scores, dtype);
    // Keys that are all infinitely far off give zeros or, as in PyTorch, NaN.
    if (!scores.empty() && !biased &&
        shift_of(scores, dtype).value() == -std::numeric_limits<Real>::infinity())
      for (std::size_t j = 0; j < scores.size(); ++j) {
        const Number unsure{0, 0, dtype, true};
        weights[j] = function_of(unsure, {{scores[j], unsure}});
      }
    // Beside a NaN, a hidden key may get NaN as well, as in PyTorch.
    Number hidden = zero(dtype).number;
    hidden.unsure = std::ranges::any_of(
        weights, [](const Scalar& s) { return s.number.unsure || std::isnan(s.value()); });
    for (const Scalar& score : later)
      weights.push_back(function_of(hidden, {{score, zero(dtype).number}}));
    weights.resize(keys, Scalar{hidden});
    return weights;
  }

  /// Weights [B, H, Tq, Tk]; `bias`, unless it is null, broadcasts to them.
  Array weights(const Array& q, const Array& k, const Array* bias = nullptr) const {
    const Array queries = by_head(q), keys = by_head(k);
    const std::size_t heads = queries.shape(1), count = k.shape(1);
    const DType dtype = dtype_of(q);
    Array y(with_last(queries.shape(), count));
    const Array added = bias ? Array(xt::broadcast(*bias, y.shape())) : y;
    for (std::size_t n = 0; n < q.shape(0); ++n)
      for (std::size_t problem = n * heads; problem < (n + 1) * heads; ++problem)
        for (std::size_t t = 0; t < q.shape(1); ++t) {
          const std::size_t at = problem * q.shape(1) + t, seen = visible(n, t, q.shape(1), count);
          std::vector<Scalar> scores;
          for (std::size_t j = 0; j < length(n, count); ++j) {
            scores.push_back(dot(row_of(queries, at), row_of(keys, problem * count + j), dtype));
            if (j >= seen) continue;
            if (options.scale != 1) scores[j] = Real{options.scale} * scores[j];
            if (bias) scores[j] = scores[j] + row_of(added, at)[j];
          }
          const Scalars all = scores;
          std::ranges::copy(
              softmax_of(all.first(seen), all.subspan(seen), count, bias != nullptr, dtype),
              y.data() + at * count);
        }
    return y;
  }

  Array operator()(const Array& q, const Array& k, const Array& v,
                   const Array* bias = nullptr) const {
    const Array w = weights(q, k, bias), columns = swapped(by_head(v), 2, 3);
    const std::size_t queries = q.shape(1), keys = k.shape(1), width = columns.shape(2);
    const DType dtype = dtype_of(q);
    Array y = by_head(q);
    for (std::size_t n = 0; n < y.shape(0); ++n) {
      const std::size_t seen = length(n, keys);
      // As in PyTorch, what a mask hides counts 0 times.
      const bool hides = mask.causal && !(finite(q, n) && finite(k, n) && finite(v, n));
      for (std::size_t problem = n * y.shape(1); problem < (n + 1) * y.shape(1); ++problem)
        for (std::size_t t = 0; t < queries; ++t) {
          const Scalars weight = row_of(w, problem * queries + t).first(seen);
          std::vector<Scalar> used(weight.begin(), weight.end());
          for (std::size_t j = 0; j < seen && options.dropout > 0; ++j)
            used[j] = dropped(weight[j], (problem * keys + j) * queries + t, options.dropout);
          for (std::size_t d = 0; d < width; ++d) {
            const Scalars column = row_of(columns, problem * width + d);
            Scalar& element = y.flat((problem * queries + t) * width + d);
            const Scalar query = element;
            element = dot(used, column.first(seen), dtype);
            // Hidden keys have a weight of 0, which an infinite gradient turns into NaN.
            if (Tape* tape = element.tape; tape && mask.causal) {
              tape->link(element, Number{1, 0, dtype, false});
              for (const Scalar& hidden : column.subspan(seen))
                tape->link(hidden, Number{0, 0, dtype, false});
              element = tape->record(element.number);
            }
            if (hides) {
              const Number unsure{1, 0, dtype, true};
              element.number.unsure = true;
              element = function_of(element.number, {{element, unsure}, {query, unsure}});
            }
          }
        }
    }
    y = swapped(y, 1, 2);
    y.reshape(q.shape());
    return y;
  }

  std::string code(const std::string& bias = "") const {
    std::string text_of = fmt::format("{{{}, {}{}}}, {{.heads = {}, .scale = {}",
                                      mask.key_lengths.size() ? text(mask.key_lengths) : "{}",
                                      text(mask.causal), bias, options.heads, text(options.scale));
    if (options.dropout > 0) text_of += ", .dropout = " + text(options.dropout);
    return text_of + "}";
  }
};

}  // namespace

Array attention(const Array& q, const Array& k, const Array& v, const AttentionMask& mask,
                const AttentionOptions& options) {
  return Attention{mask, options}(q, k, v);
}

namespace {

/// An additive bias of the scores: operands from `first` on, the values and where they are -inf.
struct ScoreBias {
  bool given = false;
  std::size_t first = 0;

  Tensor tensor(const In& x) const {
    return given ? masked_fill(x[first], x[first + 1], -std::numeric_limits<double>::infinity())
                 : Tensor();
  }
  std::optional<Array> array(const Arrays& x) const {
    if (!given) return {};
    return map(
        [](const Scalar& value, const Scalar& hidden) {
          return hidden.value() != 0 ? constant_like(-std::numeric_limits<Real>::infinity(), value)
                                     : value;
        },
        x[first], x[first + 1]);
  }
  std::string code() const {
    return given ? fmt::format(", masked_fill(${}, ${}, -INFINITY)", first, first + 1) : "";
  }
};

/// A shape that broadcasts to this one.
Shape narrower(Draw& draw, const Shape& shape) {
  std::vector<Index> sizes(shape.begin() + draw.index_below(shape.rank() + 1), shape.end());
  for (Index& size : sizes)
    if (draw.chance(30)) size = 1;
  return Shape(sizes);
}

void draw_attention_call(Builder& b, bool weights_alone) {
  // Long or wide or many, but not all at once.
  const Index queries = b.size(40), keys = b.draw.chance(30) ? b.size(40) : queries;
  const Index work = 20000 / std::max<Index>(1, queries * keys);
  const Index heads = b.draw.pick<Index>({1, 2, 3}),
              part = b.positive(std::clamp<Index>(work / 6, 1, 17));
  const Index width = heads * part, batch = b.size(std::clamp<Index>(work / width, 1, 9));
  const ScoreBias bias{b.draw.chance(30), weights_alone ? std::size_t{2} : std::size_t{3}};
  // Where a key is hidden by -inf, NaN and infinities of it may count or not.
  const auto operand = [&](const Shape& shape) {
    return bias.given ? b.finite(shape) : b.like(shape);
  };
  const std::size_t q = operand({batch, queries, width});
  const bool same = queries == keys && b.draw.chance(20);
  const std::size_t k = same ? q : operand({batch, keys, width});
  std::vector<std::size_t> operands = {q, k};
  if (!weights_alone) operands.push_back(same ? q : operand({batch, keys, width}));
  if (bias.given) {
    const Shape shape = narrower(b.draw, {batch, heads, queries, keys});
    operands.push_back(b.finite(shape));
    operands.push_back(b.draw.chance(50) ? b.whole(shape, 2) : b.whole({}, 1));
  }
  Attention attend;
  attend.mask.causal = b.draw.chance(50);
  if (b.draw.chance(50)) attend.mask.key_lengths = b.indices({batch}, keys + 1);
  attend.options = {.heads = heads, .scale = b.option({1, 0.5, 0, 0.7, -1})};
  if (weights_alone) {
    b.add("attention_weights", operands,
          {fmt::format("attention_weights($0, $1, {})", attend.code(bias.code())),
           [=](const In& x) {
             return attention_weights(x[0], x[1], attend.biased(bias.tensor(x)), attend.options);
           },
           [=](const Arrays& x) {
             const auto added = bias.array(x);
             return map(fixed, attend.weights(x[0], x[1], added ? &*added : nullptr));
           }});
    return;
  }
  if (b.draw.chance(20)) attend.options.dropout = 0.25;
  b.add(
      "attention", operands,
      {fmt::format("attention($0, $1, $2, {}, {})", attend.code(bias.code()), dropout_random_code),
       [=](const In& x) {
         return attention(x[0], x[1], x[2], attend.biased(bias.tensor(x)), attend.options,
                          dropout_random);
       },
       [=](const Arrays& x) {
         const auto added = bias.array(x);
         return attend(x[0], x[1], x[2], added ? &*added : nullptr);
       }});
}

}  // namespace

const std::map<std::string, OpDraw>& attention_draws() {
  static const std::map<std::string, OpDraw> draws = {
      {"attention", [](Builder& b) { draw_attention_call(b, false); }},
      {"attention_weights", [](Builder& b) { draw_attention_call(b, true); }},
  };
  return draws;
}

}  // namespace qkv::fuzz
