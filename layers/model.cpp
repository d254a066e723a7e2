#include "layers/model.h"

#include "layers/embedding.h"
#include "layers/encoder.h"

namespace qkv {
namespace {

constexpr double embedding_deviation = 0.5;

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
  void visit(ModuleVisitor& visit) override { visit("embedding", embedding); }

  Embedding embedding;
};

/// Embedding, positions and an encoder.
struct EncoderModel final : Model {
  EncoderModel(const ModelOptions& options, Index vocabulary, Random& random)
      : options(options),
        embedding(vocabulary, options.width, embedding_deviation, random),
        encoder(options, random) {}

  Tensor operator()(const Indices& ids, const Indices& lengths, Context& context) const override {
    Tensor x = embedding(ids);
    context.record(*this, "static", x);
    if (options.position == PositionKind::sinusoidal) x = with_sinusoidal_positions(x);
    x = encoder(context.dropped(x, options.dropout), {lengths, false}, context);
    context.record(*this, "contextual", x);
    return x;
  }
  void visit(ModuleVisitor& visit) override { visit("embedding", embedding)("encoder", encoder); }

  ModelOptions options;
  Embedding embedding;
  Encoder encoder;
};

}  // namespace

std::unique_ptr<Model> make_model(const ModelOptions& options, Index vocabulary, Random& random) {
  if (options.kind == ModelKind::static_embedding)
    return std::make_unique<StaticModel>(options, vocabulary, random);
  return std::make_unique<EncoderModel>(options, vocabulary, random);
}

}  // namespace qkv
