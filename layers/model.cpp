#include "layers/model.h"

#include <cmath>

#include "layers/convolution.h"
#include "layers/embedding.h"
#include "layers/fixed_length.h"
#include "layers/initialise.h"
#include "layers/recurrent.h"
#include "layers/transformer.h"

namespace qkv {
namespace {

Tensor identity(Index size) {
  std::vector<double> values(static_cast<std::size_t>(size * size));
  for (Index i = 0; i < size; ++i) values[static_cast<std::size_t>(i * (size + 1))] = 1;
  return Tensor::from(values, {size, size});
}

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

/// Parameter-free attention cannot look from one language to another: a decoder that looks at an
/// encoder's vectors is learned.
ModelOptions decoder_options(ModelOptions options) {
  if (options.kind == ModelKind::encoder_decoder &&
      options.attention == AttentionKind::parameter_free)
    options.attention = AttentionKind::learned;
  return options;
}

/// Embedding, positions and stacks of blocks: an encoder, a decoder, in which each position sees
/// only those before it, or both.
struct TransformerModel final : Model {
  TransformerModel(const ModelOptions& options, Index vocabulary, Random& random)
      : options(options), embedding(vocabulary, options.width, embedding_deviation, random) {
    if (options.kind != ModelKind::decoder) encoder.emplace(options, random);
    if (options.kind != ModelKind::encoder)
      decoder.emplace(decoder_options(options), random, encoder.has_value());
    if (options.position == PositionKind::learned)
      positions.emplace(options.max_length, options.width, embedding_deviation, random);
    if (encoder) return;
    Gpt2Initialisation initialise(options.layers, random);
    visit(initialise);
  }

  /// The vectors that the first block starts from.
  Tensor input(const Indices& ids, Context& context) const {
    const Index first = context.position(), end = first + ids.dim(1);
    Tensor x = embedding(ids);
    context.record(*this, "static", x);
    const Shape one_row = {1, ids.dim(1), options.width};
    if (options.position == PositionKind::sinusoidal) {
      if (context.records())
        context.record(*this, "position",
                       with_sinusoidal_positions(Tensor::zeros(one_row, x.dtype()), first));
      x = with_sinusoidal_positions(x, first);
    }
    if (positions) {
      const Tensor p = slice(positions->weight, 0, first, end);
      if (context.records()) context.record(*this, "position", reshape(p, one_row));
      x = x + p;
    }
    if (options.position == PositionKind::sinusoidal || positions)
      context.record(*this, "input", x);
    return context.dropped(x, options.dropout);
  }
  Tensor operator()(const Indices& ids, const Indices& lengths, Context& context) const override {
    Tensor x = input(ids, context);
    x = encoder ? (*encoder)(std::move(x), {{lengths, false}, {}, {}}, context)
                : (*decoder)(std::move(x), {{lengths, true}, {}, {}}, context);
    if (context.cache() && !encoder) context.cache()->advance(ids.dim(1));
    context.record(*this, "contextual", x);
    return x;
  }
  Tensor decode(const Indices& ids, const Tensor& memory, const Indices& memory_lengths,
                Context& context) const override {
    if (!encoder || !decoder) return Model::decode(ids, memory, memory_lengths, context);
    const Tensor x = (*decoder)(input(ids, context), {{{}, true}, memory, memory_lengths}, context);
    if (context.cache()) context.cache()->advance(ids.dim(1));
    return x;
  }
  const Parameter& embedding_table() const override { return embedding.weight; }
  void visit(ModuleVisitor& visit) override {
    visit("embedding", embedding);
    if (positions) visit("positions", *positions);
    if (encoder) visit("encoder", *encoder);
    if (decoder) visit("decoder", *decoder);
  }

  ModelOptions options;
  Embedding embedding;
  std::optional<Embedding> positions;
  std::optional<Transformer> encoder, decoder;
};

}  // namespace

Tensor Model::decode(const Indices&, const Tensor&, const Indices&, Context&) const {
  throw ValueError("[model] this kind of model has no decoder that looks at a memory");
}

namespace {

/// One-hot vectors, or those that are not to be trained.
void prepare_table(Model& model, const ModelOptions& options, Index vocabulary) {
  const bool one_hot = options.embedding == EmbeddingKind::one_hot;
  require<ValueError>(!one_hot || options.width == vocabulary,
                      "[model] one-hot vectors of {} tokens need width = {}, got {}", vocabulary,
                      vocabulary, options.width);
  for (const auto& [path, parameter] : parameters(model)) {
    if (parameter != &model.embedding_table()) continue;
    if (one_hot) parameter->assign(identity(vocabulary));
    if (one_hot || options.freeze_embedding) parameter->freeze();
  }
}

std::unique_ptr<Model> model_of_kind(const ModelOptions& options, Index vocabulary,
                                     Random& random) {
  switch (options.kind) {
    case ModelKind::static_embedding:
      return std::make_unique<StaticModel>(options, vocabulary, random);
    case ModelKind::recurrent:
      return make_recurrent_model(options, vocabulary, random);
    case ModelKind::convolution:
      return make_convolution_model(options, vocabulary, random);
    case ModelKind::fixed_length:
      return make_fixed_length_model(options, vocabulary, random);
    default:
      return std::make_unique<TransformerModel>(options, vocabulary, random);
  }
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelOptions& options, Index vocabulary, Random& random) {
  std::unique_ptr<Model> model = model_of_kind(options, vocabulary, random);
  prepare_table(*model, options, vocabulary);
  return model;
}

}  // namespace qkv
