#include "layers/positions.h"

#include <array>
#include <cmath>

#include "layers/embedding.h"
#include "layers/initialise.h"

namespace qkv {
namespace {

struct SinusoidalPositions final : InputPositions {
  SinusoidalPositions(const ModelOptions& options, Random&) : width(options.width) {}

  Tensor encoding(Index first, Index time, DType dtype) const override {
    return sinusoidal_positions(first, time, width, dtype);
  }

  Index width;
};

/// A row of a trained table [max_length, D] for each position.
struct LearnedPositions final : InputPositions {
  LearnedPositions(const ModelOptions& options, Random& random)
      : weight(normal({options.max_length, options.width}, embedding_std, random.next()),
               Role::position) {}

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
  Tensor query_key(const Tensor& x, Index heads, Index first) const override {
    return rotary(x, heads, rotary_cos_sin(x.dim(1), x.dim(2) / heads, first, x.dtype()));
  }
  std::string formula(std::string_view x) const override { return fmt::format("rotary({})", x); }
};

template <class Kind>
std::unique_ptr<InputPositions> input(const ModelOptions& options, Random& random) {
  return std::make_unique<Kind>(options, random);
}

template <class Kind>
std::unique_ptr<AttentionPositions> attention() {
  return std::make_unique<Kind>();
}

constexpr auto rows = std::to_array<PositionRow>({
    {PositionKind::sinusoidal, "sinusoidal", "sines and cosines added to the embeddings",
     input<SinusoidalPositions>, nullptr},
    {PositionKind::learned, "learned", "a trained table added to the embeddings",
     input<LearnedPositions>, nullptr},
    {PositionKind::rotary, "rotary", "rotation of queries and keys", nullptr,
     attention<RotaryPositions>},
    {PositionKind::none, "none", "order has no effect", nullptr, nullptr},
});
static_assert(lists_every_kind(rows));

}  // namespace

std::span<const PositionRow> position_kinds() {
  return rows;
}

std::unique_ptr<InputPositions> make_input_positions(const ModelOptions& options, Random& random) {
  const auto make = row_of(rows, options.position).input;
  return make ? make(options, random) : nullptr;
}

std::unique_ptr<AttentionPositions> make_attention_positions(const ModelOptions& options) {
  const auto make = row_of(rows, options.position).attention;
  return make ? make() : nullptr;
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
