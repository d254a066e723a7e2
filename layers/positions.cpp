#include "layers/positions.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "layers/embedding.h"
#include "layers/initialise.h"

namespace qkv {
namespace {

struct SinusoidalPositions final : InputPositions {
  explicit SinusoidalPositions(const ModelOptions& options) : width(options.width) {}

  Tensor encoding(Index first, Index time, DType dtype) const override {
    return sinusoidal_positions(first, time, width, dtype);
  }

  Index width;
};

/// A row of a trained table [max_length, D] for each position.
struct LearnedPositions final : InputPositions {
  explicit LearnedPositions(const ModelOptions& options)
      : weight({options.max_length, options.width}, normal(options.embedding_std), Role::position) {
  }

  Tensor encoding(Index first, Index time, DType) const override {
    const Index longest = weight.shape()[0];
    require<ValueError>(first + time <= longest,
                        "[positions] a sequence of {} tokens is longer than the table of learned "
                        "positions, max_length = {}; cut the sequence or raise max_length",
                        first + time, longest);
    return slice(weight, 0, first, first + time);
  }
  void visit(ModuleVisitor& visit) override { visit("weight", weight); }

  Parameter weight;
};

/// Rotates queries and keys, so that scores depend on distances alone (Su et al. 2021, "RoFormer").
struct RotaryPositions final : AttentionPositions {
  explicit RotaryPositions(const ModelOptions&) {}

  Tensor query_key(const Tensor& x, Index heads, Index first) const override {
    return rotary(x, heads, rotary_cos_sin(x.dim(1), x.dim(2) / heads, first, x.dtype()));
  }
  std::string formula(std::string_view x) const override { return fmt::format("rotary({})", x); }
};

/// A trained bias of each head for each distance between key and query, clipped, that is added to
/// the scores (Raffel et al. 2020, "T5"; distances clipped as in Shaw et al. 2018).
struct RelativePositions : AttentionPositions {
  explicit RelativePositions(const ModelOptions& options)
      : longest(options.max_distance),
        weight(Tensor::zeros({2 * longest + 1, options.heads}), Role::position) {}

  Tensor score_bias(Index, Index first, Index queries, Index keys, DType) const override {
    std::vector<std::int32_t> rows;
    rows.reserve(static_cast<std::size_t>(queries * keys));
    for (Index query = first; query < first + queries; ++query)
      for (Index key = 0; key < keys; ++key)
        rows.push_back(
            static_cast<std::int32_t>(std::clamp(key - query, -longest, longest) + longest));
    return permute(embedding(weight, Indices(rows, {queries, keys})), {2, 0, 1});
  }
  void visit(ModuleVisitor& visit) override { visit("weight", weight); }

  Index longest;
  Parameter weight;
};

/// The scores inside a window at its start: at 30 words outside, 10 inside get 99 % of the weight.
constexpr float window_bias = 6;

/// Relative positions that start as windows, see `window_of`.
struct WindowPositions final : RelativePositions {
  explicit WindowPositions(const ModelOptions& options) : RelativePositions(options) {
    if (!weight.value().has_storage()) return;
    const auto biases = weight.mutable_data<float>();
    for (Index i = 0; i < std::ssize(biases); ++i)
      if (window_of(i % options.heads, options).has(i / options.heads - longest))
        biases[static_cast<std::size_t>(i)] = window_bias;
  }
};

template <class Kind>
std::unique_ptr<InputPositions> input(const ModelOptions& options) {
  return std::make_unique<Kind>(options);
}

template <class Kind>
std::unique_ptr<AttentionPositions> attention(const ModelOptions& options) {
  return std::make_unique<Kind>(options);
}

constexpr auto position_rows = std::to_array<PositionRow>({
    {PositionKind::sinusoidal, "sinusoidal", "sines and cosines added to the embeddings",
     input<SinusoidalPositions>, nullptr},
    {PositionKind::learned, "learned", "a trained table added to the embeddings",
     input<LearnedPositions>, nullptr},
    {PositionKind::rotary, "rotary", "rotation of queries and keys", nullptr,
     attention<RotaryPositions>},
    {PositionKind::relative, "relative", "a trained bias of scores for each distance", nullptr,
     attention<RelativePositions>},
    {PositionKind::windows, "windows", "relative that starts with a window for each head", nullptr,
     attention<WindowPositions>},
    {PositionKind::none, "none", "order has no effect", nullptr, nullptr},
});
static_assert(lists_every_kind(position_rows));

}  // namespace

Window window_of(Index head, const ModelOptions& options) {
  if (head == 0) return {};
  const Index width = Index{1} << std::min<Index>((head - 1) / 2, 30);
  const Index reach = std::min(width, options.max_distance - 1);
  return head % 2 ? Window{-reach, 0} : Window{0, reach};
}

std::span<const PositionRow> position_kinds() {
  return position_rows;
}

std::unique_ptr<InputPositions> make_input_positions(const ModelOptions& options) {
  const auto make = row_of(position_rows, options.position).input;
  return make ? make(options) : nullptr;
}

bool acts_in_attention(const ModelOptions& options) {
  if (!row_of(position_rows, options.position).attention) return false;
  return options.attention == AttentionKind::learned ||
         (options.attention == AttentionKind::parameter_free &&
          options.position == PositionKind::rotary);
}

std::unique_ptr<AttentionPositions> make_attention_positions(const ModelOptions& options) {
  return acts_in_attention(options) ? row_of(position_rows, options.position).attention(options)
                                    : nullptr;
}

Tensor sinusoidal_positions(Index first, Index time, Index width, DType dtype) {
  std::vector<double> encoding;
  encoding.reserve(static_cast<std::size_t>(time * width));
  for (Index t = first; t < first + time; ++t)
    for (Index i = 0; i < width; ++i) {
      const Index pair = i / 2;
      const double exponent = static_cast<double>(2 * pair) / static_cast<double>(width);
      const double angle = static_cast<double>(t) / std::pow(10000.0, exponent);
      encoding.push_back(i % 2 ? std::cos(angle) : std::sin(angle));
    }
  return Tensor::from(encoding, {time, width}, dtype);
}

}  // namespace qkv
