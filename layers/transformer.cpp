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

/// Norms of options, see `norm_epsilon`.
LayerNorm layer_norm_of(const ModelOptions& options) {
  return LayerNorm(options.width, options.bias, norm_epsilon(options.kind));
}

/// The layers that BERT has besides those of an encoder. The first of two token types is added to
/// every embedding.
struct BertLayers {
  explicit BertLayers(const ModelOptions& options)
      : token_types(2, options.width, options.embedding_std),
        input_norm(layer_norm_of(options)),
        pooler(options.width, options.width, options.bias) {}

  Embedding token_types;
  LayerNorm input_norm;
  Linear pooler;
};

struct TransformerModel final : Model {
  TransformerModel(const ModelOptions& options, Index vocabulary)
      : Model(options, vocabulary), dropout(options.dropout) {
    const bool both = options.kind == ModelKind::encoder_decoder;
    if (options.kind != ModelKind::decoder) encoder.emplace(options);
    if (both || !encoder) decoder.emplace(decoder_options(options), both);
    positions = make_input_positions(options);
    if (options.kind == ModelKind::bert) bert.emplace(options);
    if (!encoder) initialise_as_gpt2(options.layers);
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
    return context.hooked(*this, "decoded", std::move(x));
  }
  Tensor sentence(const Tensor& x, const Indices& lengths) const override {
    if (!bert) return Model::sentence(x, lengths);
    return tanh(bert->pooler(reshape(slice(x, 1, 0, 1), {x.dim(0), x.dim(2)})));
  }
  void visit(ModuleVisitor& visit) override {
    visit("embedding", embedding);
    if (positions) visit("positions", *positions);
    if (bert)
      visit("token_types", bert->token_types)("input_norm", bert->input_norm)("pooler",
                                                                              bert->pooler);
    if (encoder) visit("encoder", *encoder);
    if (decoder) visit("decoder", *decoder);
  }
  std::vector<Row> formulas() const override {
    std::vector<Row> rows = Model::formulas();
    rows.push_back({"decoded", {"y_i", "", "contextual vector"}});
    rows.push_back({"typed", {"t_i", "e_i + T_0", "embedding + token type"}});
    rows.push_back({"position", {"p_i", "P_i", "position: row i of the table of positions"}});
    rows.push_back({"input", {"x_i", bert ? "t_i + p_i" : "e_i + p_i", "embedding + position"}});
    if (bert)
      rows.push_back(
          {"input_norm.output", {"x_i", bert->input_norm.formula("x_i"), "norm of embeddings"}});
    return rows;
  }

  double dropout;
  std::unique_ptr<InputPositions> positions;
  std::optional<BertLayers> bert;
  std::optional<Transformer> encoder, decoder;

 private:
  /// Makes matrices start normal with standard deviation 0.02, divided by
  /// sqrt(number of residual additions) for those that write to the residual stream (Radford et al.
  /// 2019, 2.3). Relative positions, which are biases, start at 0 as in an encoder.
  void initialise_as_gpt2(Index layers) {
    const double residual_std = 0.02 / std::sqrt(2.0 * static_cast<double>(layers));
    for (const auto& [path, parameter] : parameters(*this)) {
      const bool relative = parameter->role() == Role::position && !positions;
      if (parameter->shape().rank() != 2 || relative) continue;
      const double std = writes_to_residual(parameter->role()) ? residual_std : 0.02;
      parameter->set_initialiser(normal(std));
    }
  }

  /// The input of the first block: embeddings, positions and the token type 0.
  Tensor input(const Indices& ids, const Indices& lengths, Context& context) const {
    Tensor x = embedded(ids, lengths, context);
    if (bert) {
      x = x + bert->token_types(Indices(std::vector<std::int32_t>{0}, {1, 1}));
      context.record(*this, "typed", x);
    }
    if (positions) {
      const Tensor p = positions->encoding(context.position(), ids.dim(1), x.dtype());
      if (context.records()) context.record(*this, "position", reshape(p, {1, p.dim(0), p.dim(1)}));
      x = x + p;
      context.record(*this, "input", x);
    }
    if (bert) {
      x = bert->input_norm(x);
      context.record(*this, "input_norm.output", x);
    }
    return context.dropped(x, dropout);
  }
};

}  // namespace

TransformerBlock::TransformerBlock(const ModelOptions& options, bool cross)
    : norm(options.norm), dropout(options.dropout), attention(options) {
  if (options.attention == AttentionKind::parameter_free) return;
  residual = true;
  const auto emplace = [&](std::optional<LayerNorm>& layer_norm) {
    if (norm != NormKind::none) layer_norm = layer_norm_of(options);
  };
  emplace(norm_1);
  if (cross) {
    emplace(norm_cross);
    cross_attention.emplace(options, true);
  }
  if (options.feed_forward == 0) return;
  emplace(norm_2);
  feed_forward.emplace(options.width, options.feed_forward, options.bias, options.activation);
}

/// `norm_output`: the name of the norm's output in records.
template <class Sublayer>
Tensor TransformerBlock::with_residual(const Tensor& x, const std::optional<LayerNorm>& layer_norm,
                                       std::string_view norm_output, Sublayer sublayer,
                                       Context& context) const {
  const auto normalized = [&](const Tensor& y) {
    Tensor h = (*layer_norm)(y);
    context.record(*this, norm_output, h);
    return h;
  };
  // A function of its own frees its intermediate results before the addition.
  const auto change = [&] {
    return context.dropped(sublayer(norm == NormKind::pre ? normalized(x) : x), dropout);
  };
  return norm == NormKind::post ? normalized(x + change()) : x + change();
}

Tensor TransformerBlock::operator()(Tensor x, const AttentionInputs& inputs,
                                    Context& context) const {
  const auto self_attend = [&](const Tensor& h) { return attention(h, h, inputs.mask, context); };
  x = residual ? with_residual(x, norm_1, "norm_1.output", self_attend, context) : self_attend(x);
  if (cross_attention) {
    const AttentionMask mask{.key_lengths = inputs.encoded_lengths};
    const auto cross_attend = [&](const Tensor& h) {
      return (*cross_attention)(h, inputs.encoded, mask, context);
    };
    context.record(*this, "attended", x);
    x = with_residual(x, norm_cross, "norm_cross.output", cross_attend, context);
  }
  if (feed_forward) {
    const auto transform = [&](const Tensor& h) {
      Tensor f = context.replaced(*feed_forward, "output", (*feed_forward)(h));
      context.record(*this, "feed_forward.output", f);
      return f;
    };
    context.record(*this, cross_attention ? "cross_attended" : "attended", x);
    x = with_residual(x, norm_2, "norm_2.output", transform, context);
  }
  return context.hooked(*this, "output", std::move(x));
}

std::vector<FormulaSource::Row> TransformerBlock::formulas() const {
  const bool pre = norm == NormKind::pre, post = norm == NormKind::post;
  const auto normalized = [&](const std::optional<LayerNorm>& layer_norm, const char* symbol,
                              const char* input, const char* change) -> Formula {
    if (!layer_norm) return {};
    if (post) return {"x_i", fmt::format("norm(x_i + {})", change), "residual and norm"};
    return {symbol, layer_norm->formula(input), "norm"};
  };
  const auto transformed = [&]() -> Formula {
    if (!feed_forward) return {};
    const char* input = pre ? "h'_i" : post ? "x_i" : "x'_i";
    return {"f_i", feed_forward->formula(input), "feed-forward"};
  };
  const Formula output = feed_forward ? Formula{"x_i", "x'_i + f_i", "residual"}
                         : residual   ? Formula{"x_i", "x_i + o_i", "residual"}
                                      : Formula{"x_i", "o_i", "what attention gives"};
  return {{"norm_1.output", normalized(norm_1, "h_i", "x_i", "o_i")},
          {"attended", {"x'_i", "x_i + o_i", "residual"}},
          {"norm_cross.output", normalized(norm_cross, "h_i", "x'_i", "o_i")},
          {"cross_attended", {"x'_i", "x'_i + o_i", "residual"}},
          {"norm_2.output", normalized(norm_2, "h'_i", "x'_i", "f_i")},
          {"feed_forward.output", transformed()},
          {"output", output}};
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

Transformer::Transformer(const ModelOptions& options, bool cross) {
  for (Index i = 0; i < options.layers; ++i) layers.emplace_back(options, cross);
  if (options.attention != AttentionKind::parameter_free && options.norm == NormKind::pre)
    norm = layer_norm_of(options);
}

Tensor Transformer::operator()(Tensor x, const AttentionInputs& inputs, Context& context) const {
  x = context.hooked(*this, "input", std::move(x));
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
    context.record(*this, "norm.output", x);
  }
  context.record(*this, "output", x);
  return x;
}

std::vector<FormulaSource::Row> Transformer::formulas() const {
  return {{"input", {"x_i", "", ""}},
          {"norm.output", {"y_i", norm ? norm->formula("x_i") : "", "last norm"}},
          {"output", {"y_i", "", "last vector"}}};
}

void Transformer::visit(ModuleVisitor& visit) {
  visit("layers", layers);
  if (norm) visit("norm", *norm);
}

std::unique_ptr<Model> make_transformer_model(const ModelOptions& options, Index vocabulary) {
  return std::make_unique<TransformerModel>(options, vocabulary);
}

}  // namespace qkv
