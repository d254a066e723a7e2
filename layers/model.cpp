#include "layers/model.h"

#include <cmath>

#include "layers/embedding.h"
#include "layers/encoder.h"
#include "layers/initialise.h"
#include "layers/recurrent.h"

namespace qkv {
namespace {

/// Every word keeps its one vector, whatever its sentence.
struct StaticModel final : Model {
  StaticModel(const ModelOptions& options, Index vocabulary, Random& random)
      : embedding(vocabulary, options.width, embedding_deviation, random) {}

  Tensor operator()(const Indices& ids, const Indices&, Context& context) const override {
    Tensor x = embedding(ids);
    context.record(*this, "static", x);
    context.record(*this, "contextual", x);
    return x;
  }
  const Parameter& embedding_table() const override { return embedding.weight; }
  void visit(ModuleVisitor& visit) override { visit("embedding", embedding); }

  Embedding embedding;
};

/// Initial weights as of GPT-2 (Radford et al. 2019, 2.3): normal with deviation 0.02, and less by
/// sqrt(number of residual additions) for the layers that write to the residual stream.
struct Gpt2Initialisation final : ModuleVisitor {
  Gpt2Initialisation(Index layers, Random& random) : layers(layers), random(random) {}

  void parameter(const std::string& path, Parameter& parameter) override {
    if (parameter.shape().rank() != 2) return;
    const bool residual = path.ends_with("w_o.weight") || path.ends_with("w_2.weight");
    const double deviation = residual ? 0.02 / std::sqrt(2.0 * static_cast<double>(layers)) : 0.02;
    parameter.assign(normal(parameter.shape(), deviation, random.next()));
  }

  Index layers;
  Random& random;
};

/// Embedding, positions and a stack of blocks. In a decoder each position sees only those before
/// it.
struct TransformerModel final : Model {
  TransformerModel(const ModelOptions& options, Index vocabulary, Random& random)
      : options(options),
        embedding(vocabulary, options.width, embedding_deviation, random),
        blocks(options, random) {
    if (options.position == PositionKind::learned)
      positions.emplace(options.max_length, options.width, embedding_deviation, random);
    if (!causal()) return;
    Gpt2Initialisation initialise(options.layers, random);
    visit(initialise);
  }

  Tensor operator()(const Indices& ids, const Indices& lengths, Context& context) const override {
    Tensor x = embedding(ids);
    context.record(*this, "static", x);
    if (options.position == PositionKind::sinusoidal) x = with_sinusoidal_positions(x);
    if (positions) x = x + slice(positions->weight, 0, 0, ids.dim(1));
    x = blocks(context.dropped(x, options.dropout), {lengths, causal()}, context);
    context.record(*this, "contextual", x);
    return x;
  }
  bool causal() const { return options.kind == ModelKind::decoder; }
  const Parameter& embedding_table() const override { return embedding.weight; }
  void visit(ModuleVisitor& visit) override {
    visit("embedding", embedding);
    if (positions) visit("positions", *positions);
    visit(causal() ? "decoder" : "encoder", blocks);
  }

  ModelOptions options;
  Embedding embedding;
  std::optional<Embedding> positions;
  Encoder blocks;
};

}  // namespace

std::unique_ptr<Model> make_model(const ModelOptions& options, Index vocabulary, Random& random) {
  switch (options.kind) {
    case ModelKind::static_embedding:
      return std::make_unique<StaticModel>(options, vocabulary, random);
    case ModelKind::recurrent:
      return make_recurrent_model(options, vocabulary, random);
    default:
      return std::make_unique<TransformerModel>(options, vocabulary, random);
  }
}

}  // namespace qkv
