#include "layers/transformer.h"

#include <cmath>
#include <span>
#include <utility>

#include "layers/initialise.h"
#include "layers/positions.h"

namespace qkv {
namespace {

/// A decoder that attends to encoder output is learned also where the encoder is parameter-free,
/// which cannot relate two vocabularies.
ModelOptions decoder_options(ModelOptions options) {
  if (options.kind == ModelKind::encoder_decoder &&
      options.attention == AttentionKind::parameter_free)
    options.attention = AttentionKind::learned;
  return options;
}

struct TransformerModel final : Model {
  TransformerModel(const ModelOptions& options, Index vocabulary, Random& random)
      : Model(options, vocabulary, random), dropout(options.dropout) {
    if (options.kind != ModelKind::decoder) encoder.emplace(options, random);
    if (options.kind != ModelKind::encoder)
      decoder.emplace(decoder_options(options), random, encoder.has_value());
    positions = make_input_positions(options, random);
    if (options.token_types > 0)
      token_types.emplace(options.token_types, options.width, options.embedding_std, random);
    if (options.embedding_norm)
      input_norm.emplace(options.width, options.bias, options.norm_epsilon);
    if (options.pooling == PoolingKind::first)
      pooler.emplace(options.width, options.width, random, options.bias);
    if (!encoder) initialise_as_gpt2(options.layers, random);
  }

  Tensor operator()(const Indices& ids, const Indices& lengths, Context& context) const override {
    Tensor x = input(ids, lengths, context);
    x = encoder
            ? (*encoder)(std::move(x), {.mask = {.key_lengths = lengths}}, context)
            : (*decoder)(std::move(x), {.mask = {.key_lengths = lengths, .causal = true}}, context);
    if (context.cache() && !encoder) context.cache()->advance(ids.dim(1));
    return contextual(x, context);
  }
  Tensor decode(const Indices& ids, const Tensor& encoded, const Indices& encoded_lengths,
                Context& context) const override {
    if (!encoder || !decoder) return Model::decode(ids, encoded, encoded_lengths, context);
    const AttentionInputs inputs{.mask = {.key_lengths = {}, .causal = true},
                                 .encoded = encoded,
                                 .encoded_lengths = encoded_lengths};
    Tensor x = (*decoder)(input(ids, {}, context), inputs, context);
    if (context.cache()) context.cache()->advance(ids.dim(1));
    return context.hooked(*this, "decoded", std::move(x), "y_i", "", "contextual vector");
  }
  Tensor sentence(const Tensor& x, const Indices& lengths) const override {
    if (!pooler) return Model::sentence(x, lengths);
    return tanh((*pooler)(reshape(slice(x, 1, 0, 1), {x.dim(0), x.dim(2)})));
  }
  void visit(ModuleVisitor& visit) override {
    visit("embedding", embedding);
    if (positions) visit("positions", *positions);
    if (token_types) visit("token_types", *token_types);
    if (input_norm) visit("input_norm", *input_norm);
    if (pooler) visit("pooler", *pooler);
    if (encoder) visit("encoder", *encoder);
    if (decoder) visit("decoder", *decoder);
  }

  double dropout;
  std::unique_ptr<InputPositions> positions;
  std::optional<Embedding> token_types;
  std::optional<LayerNorm> input_norm;
  std::optional<Linear> pooler;
  std::optional<Transformer> encoder, decoder;

 private:
  /// Normal with standard deviation 0.02, and less by sqrt(number of residual additions) for the
  /// layers that write to the residual stream (Radford et al. 2019, 2.3). Relative positions, which
  /// are biases, start at 0 as in an encoder.
  void initialise_as_gpt2(Index layers, Random& random) {
    const double residual_std = 0.02 / std::sqrt(2.0 * static_cast<double>(layers));
    for (const auto& [path, parameter] : parameters(*this)) {
      const bool relative = parameter->role() == Role::position && !positions;
      if (parameter->shape().rank() != 2 || relative) continue;
      const double std = writes_to_residual(parameter->role()) ? residual_std : 0.02;
      parameter->assign(normal(parameter->shape(), std, random.next()));
    }
  }

  /// The input of the first block: embeddings, positions and the token type 0.
  Tensor input(const Indices& ids, const Indices& lengths, Context& context) const {
    Tensor x = embedded(ids, lengths, context);
    if (token_types) {
      x = x + (*token_types)(Indices(std::vector<std::int32_t>{0}, {1, 1}));
      context.record(*this, "typed", x, "t_i", "e_i + T_0", "embedding + token type");
    }
    if (positions) {
      const Tensor p = positions->encoding(context.position(), ids.dim(1), x.dtype());
      if (context.records())
        context.record(*this, "position", reshape(p, {1, p.dim(0), p.dim(1)}), "p_i", "P_i",
                       "position: row i of the table of positions");
      x = x + p;
      context.record(*this, "input", x, "x_i", token_types ? "t_i + p_i" : "e_i + p_i",
                     "embedding + position");
    }
    if (input_norm) {
      x = (*input_norm)(x);
      if (context.records())
        context.record(*input_norm, "output", x, "x_i", input_norm->formula("x_i"),
                       "norm of embeddings");
    }
    return context.dropped(x, dropout);
  }
};

}  // namespace

TransformerBlock::TransformerBlock(const ModelOptions& options, Random& random, bool cross)
    : norm(options.norm), dropout(options.dropout), attention(options, random) {
  if (options.attention == AttentionKind::parameter_free) return;
  residual = true;
  const auto emplace = [&](std::optional<LayerNorm>& layer_norm) {
    if (norm != NormKind::none)
      layer_norm.emplace(options.width, options.bias, options.norm_epsilon);
  };
  emplace(norm_1);
  if (cross) {
    emplace(norm_cross);
    cross_attention.emplace(options, random, true);
  }
  if (options.feed_forward == 0) return;
  emplace(norm_2);
  feed_forward.emplace(options.width, options.feed_forward, random, options.bias,
                       options.activation);
}

template <class Sublayer>
Tensor TransformerBlock::with_residual(const Tensor& x, const std::optional<LayerNorm>& layer_norm,
                                       const Symbols& symbols, Sublayer sublayer,
                                       Context& context) const {
  const bool post = norm == NormKind::post;
  const auto normalized = [&](const Tensor& y) {
    Tensor h = (*layer_norm)(y);
    if (context.records() && post)
      context.record(*layer_norm, "output", h, "x_i", fmt::format("norm(x_i + {})", symbols.output),
                     "residual and norm");
    else if (context.records())
      context.record(*layer_norm, "output", h, symbols.normalized,
                     layer_norm->formula(symbols.input), "norm");
    return h;
  };
  // A function of its own frees its intermediate results before the addition.
  const auto change = [&] {
    return context.dropped(sublayer(norm == NormKind::pre ? normalized(x) : x), dropout);
  };
  return post ? normalized(x + change()) : x + change();
}

Tensor TransformerBlock::operator()(Tensor x, const AttentionInputs& inputs,
                                    Context& context) const {
  const auto self_attend = [&](const Tensor& h) { return attention(h, h, inputs.mask, context); };
  x = residual ? with_residual(x, norm_1, {"x_i", "h_i", "o_i"}, self_attend, context)
               : self_attend(x);
  if (cross_attention) {
    const AttentionMask mask{.key_lengths = inputs.encoded_lengths};
    const auto cross_attend = [&](const Tensor& h) {
      return (*cross_attention)(h, inputs.encoded, mask, context);
    };
    context.record(*this, "attended", x, "x'_i", "x_i + o_i", "residual");
    x = with_residual(x, norm_cross, {"x'_i", "h_i", "o_i"}, cross_attend, context);
  }
  if (feed_forward) {
    const auto transform = [&](const Tensor& h) {
      const std::string_view input = norm == NormKind::post   ? "x_i"
                                     : norm == NormKind::none ? "x'_i"
                                                              : "h'_i";
      return context.hooked(*feed_forward, "output", (*feed_forward)(h), "f_i",
                            context.records() ? FeedForward::formula(input) : "", "feed-forward");
    };
    if (cross_attention)
      context.record(*this, "cross_attended", x, "x'_i", "x'_i + o_i", "residual");
    else
      context.record(*this, "attended", x, "x'_i", "x_i + o_i", "residual");
    x = with_residual(x, norm_2, {"x'_i", "h'_i", "f_i"}, transform, context);
  }
  return hooked_output(std::move(x), context);
}

Tensor TransformerBlock::hooked_output(Tensor x, const Context& context) const {
  const auto hooked = [&](std::string_view formula, std::string_view meaning) {
    return context.hooked(*this, "output", std::move(x), "x_i", formula, meaning);
  };
  if (feed_forward) return hooked("x'_i + f_i", "residual");
  return residual ? hooked("x_i + o_i", "residual") : hooked("o_i", "what attention gives");
}

void TransformerBlock::visit(ModuleVisitor& visit) {
  if (norm_1) visit("norm_1", *norm_1);
  visit("attention", attention);
  if (norm_cross) visit("norm_cross", *norm_cross);
  if (cross_attention) visit("cross_attention", *cross_attention);
  if (norm_2) visit("norm_2", *norm_2);
  if (feed_forward) visit("feed_forward", *feed_forward);
}

namespace {

/// A block as a function of its input and the encoder output, for `recomputed`.
struct RecomputedBlock {
  const TransformerBlock& block;
  AttentionInputs inputs;
  Context context;

  Tensor operator()(std::span<const Tensor> x) {
    AttentionInputs all = inputs;
    all.encoded = x[1];
    return block(x[0], all, context);
  }
};

}  // namespace

Transformer::Transformer(const ModelOptions& options, Random& random, bool cross) {
  for (Index i = 0; i < options.layers; ++i) layers.emplace_back(options, random, cross);
  if (options.attention != AttentionKind::parameter_free && options.norm == NormKind::pre)
    norm.emplace(options.width, options.bias, options.norm_epsilon);
}

Tensor Transformer::operator()(Tensor x, const AttentionInputs& inputs, Context& context) const {
  x = context.hooked(*this, "input", std::move(x), "x_i");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    context.enter_layer(&layers[i], static_cast<Index>(i));
    if (context.recomputes()) {
      RecomputedBlock block{layers[i], inputs, context};
      x = recomputed({std::move(x), std::exchange(block.inputs.encoded, {})}, block);
      context = block.context;  // after the random numbers of the block
    } else {
      x = layers[i](std::move(x), inputs, context);
    }
  }
  context.enter_layer(nullptr);
  if (norm) {
    x = (*norm)(x);
    if (context.records())
      context.record(*norm, "output", x, "y_i", norm->formula("x_i"), "last norm");
  }
  context.record(*this, "output", x, "y_i", "", "last vector");
  return x;
}

void Transformer::visit(ModuleVisitor& visit) {
  visit("layers", layers);
  if (norm) visit("norm", *norm);
}

std::unique_ptr<Model> make_transformer_model(const ModelOptions& options, Index vocabulary,
                                              Random& random) {
  return std::make_unique<TransformerModel>(options, vocabulary, random);
}

}  // namespace qkv
