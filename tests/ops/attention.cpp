#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

struct Attention {
  AttentionMask mask;
  AttentionOptions options;

  AttentionMask biased(const Tensor& bias) const { return {mask.key_lengths, mask.causal, bias}; }

  /// Keys that query t of sequence n may attend to.
  Index visible(Index n, Index t, Index queries, Index keys) const {
    const Index all = length(n, keys);
    return mask.causal ? std::clamp<Index>(t + 1 + keys - queries, 0, all) : all;
  }
  /// Keys of sequence n that are not padding. Those that are hidden all the same count 0 times,
  /// which matters where a gradient is infinite.
  Index length(Index n, Index keys) const {
    return mask.key_lengths.size() ? mask.key_lengths.data()[static_cast<std::size_t>(n)] : keys;
  }

  static bool finite(Index n, std::initializer_list<const Array*> arrays) {
    for (const Array* x : arrays)
      for (const Scalar& s : row(*x, n, x->size() / x->shape[0]))
        if (!s.number.finite() || s.number.over()) return false;
    return true;
  }

  /// Weights [B, H, Tq, Tk]; `bias`, unless it is null, broadcasts to them.
  Array weights(const Array& q, const Array& k, const Array* bias = nullptr) const {
    const Index batch = q.shape[0], queries = q.shape[1], width = q.shape[2], keys = k.shape[1];
    const Index heads = options.heads, part = width / heads;
    Array y{{batch, heads, queries, keys}, {}};
    const DType dtype = dtype_in({q, k});
    for (Index n = 0; n < batch; ++n)
      for (Index h = 0; h < heads; ++h)
        for (Index t = 0; t < queries; ++t) {
          std::vector<Scalar> scores, later;
          const Index seen = visible(n, t, queries, keys);
          const auto of = [&](const Array& x, Index rows, Index i) {
            return std::span(x.scalars).subspan(
                static_cast<std::size_t>((n * rows + i) * width + h * part),
                static_cast<std::size_t>(part));
          };
          for (Index j = 0; j < length(n, keys); ++j) {
            const Scalar score = dot(of(q, queries, t), of(k, keys, j), dtype);
            if (j >= seen) {
              later.push_back(score);
              continue;
            }
            scores.push_back(options.scale == 1 ? score : Real{options.scale} * score);
            if (!bias) continue;
            const Scalar& added = (*bias)[broadcast_position(
                bias->shape, y.shape, ((n * heads + h) * queries + t) * keys + j)];
            scores.back() = scores.back() + added;
          }
          std::vector<Scalar> row = softmax(scores, dtype);
          // Keys that are all infinitely far off give zeros or, as in PyTorch, NaN.
          if (!scores.empty() && !bias &&
              shift_of(scores, dtype).value() == -std::numeric_limits<Real>::infinity())
            for (std::size_t j = 0; j < row.size(); ++j) {
              const Number unsure{0, 0, dtype, true};
              row[j] = function_of(unsure, {{scores[j], unsure}});
            }
          // Beside a NaN, a hidden key may get NaN as well, as in PyTorch.
          Scalar hidden = zero(dtype);
          hidden.number.unsure = std::ranges::any_of(
              row, [](const Scalar& s) { return s.number.unsure || std::isnan(s.value()); });
          for (const Scalar& score : later)
            row.push_back(function_of(hidden.number, {{score, Number{0, 0, dtype, false}}}));
          row.resize(static_cast<std::size_t>(keys), hidden);
          y.scalars.insert(y.scalars.end(), row.begin(), row.end());
        }
    return y;
  }

  Array operator()(const Array& q, const Array& k, const Array& v,
                   const Array* bias = nullptr) const {
    const Index batch = q.shape[0], queries = q.shape[1], width = q.shape[2], keys = k.shape[1];
    const Index heads = options.heads, part = width / heads;
    const Array w = weights(q, k, bias);
    Array y = q;
    const DType dtype = dtype_in({q, k});
    for (Index n = 0; n < batch; ++n)
      for (Index h = 0; h < heads; ++h)
        for (Index t = 0; t < queries; ++t) {
          const Index problem = n * heads + h, seen = length(n, keys);
          std::vector<Scalar> used;
          for (Index j = 0; j < seen; ++j) {
            const Scalar& weight = w[(problem * queries + t) * keys + j];
            used.push_back(options.dropout > 0 ? dropped(weight, (problem * keys + j) * queries + t,
                                                         options.dropout)
                                               : weight);
          }
          for (Index d = 0; d < part; ++d) {
            std::vector<Scalar> column;
            for (Index j = 0; j < seen; ++j)
              column.push_back(v[(n * keys + j) * width + h * part + d]);
            Scalar& sum = y[(n * queries + t) * width + h * part + d];
            sum = dot(used, column, dtype);
            // Hidden keys have a weight of 0, which an infinite gradient turns into NaN.
            if (Tape* tape = sum.tape; tape && mask.causal) {
              tape->link(sum, Number{1, 0, dtype, false});
              for (Index j = seen; j < keys; ++j)
                tape->link(v[(n * keys + j) * width + h * part + d], Number{0, 0, dtype, false});
              sum = tape->record(sum.number);
            }
            // As in PyTorch, what a mask hides counts 0 times.
            if (mask.causal && !finite(n, {&q, &k, &v})) {
              sum.number.unsure = true;
              const Number unsure{1, 0, dtype, true};
              const Scalar& query = q[(n * queries + t) * width + h * part + d];
              sum = function_of(sum.number, {{sum, unsure}, {query, unsure}});
            }
          }
        }
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
    return map(x[first], broadcast_to(x[first + 1], x[first].shape),
               [](const Scalar& value, const Scalar& hidden) {
                 return hidden.value() != 0
                            ? constant_like(-std::numeric_limits<Real>::infinity(), value)
                            : value;
               });
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
             Array w = attend.weights(x[0], x[1], added ? &*added : nullptr);
             for (Scalar& s : w.scalars) s = fixed(s);
             return w;
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
