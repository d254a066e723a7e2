#pragma once

#include <array>
#include <string>

#include "core/kinds.h"
#include "core/shape.h"

namespace qkv {

/// See layers/model.h.
enum class ModelKind {
  encoder,
  bert,
  decoder,
  encoder_decoder,
  recurrent,
  convolution,
  fixed_length,
  static_embedding
};
constexpr bool is_transformer(ModelKind kind) {
  return kind == ModelKind::encoder || kind == ModelKind::bert || kind == ModelKind::decoder ||
         kind == ModelKind::encoder_decoder;
}

/// Added to the variance in layer norms; BERT's is smaller.
constexpr double norm_epsilon(ModelKind kind) {
  return kind == ModelKind::bert ? 1e-12 : 1e-5;
}

/// Where the attention weights come from: learned queries and keys, the inputs' own dot products
/// (softmax(X X^T / sqrt(D)) X with `scale`, as tutorials build it first), or none, so that all
/// visible keys have equal weights. An encoder-decoder's decoder is learned where the encoder is
/// parameter-free.
enum class AttentionKind { learned, parameter_free, uniform };
inline constexpr auto attention_kinds = std::to_array<Kind<AttentionKind>>({
    {AttentionKind::learned, "learned", "learned queries and keys"},
    {AttentionKind::parameter_free, "parameter-free",
     "softmax(X X^T / sqrt(D)) X with model.scale, in an encoder-decoder's "
     "encoder alone"},
    {AttentionKind::uniform, "uniform", "equal weights"},
});
static_assert(lists_every_kind(attention_kinds));

/// See layers/positions.h.
enum class PositionKind { sinusoidal, learned, rotary, relative, windows, none };

/// Whether the embedding table is trained, or the identity matrix.
enum class EmbeddingKind { learned, one_hot };
inline constexpr auto embedding_kinds = std::to_array<Kind<EmbeddingKind>>({
    {EmbeddingKind::learned, "learned", "trained vectors"},
    {EmbeddingKind::one_hot, "one-hot", "1 at the token's id, else 0"},
});
static_assert(lists_every_kind(embedding_kinds));

/// Whether a block normalizes the input of each sub-layer, the sum after it, or nothing.
enum class NormKind { pre, post, none };
inline constexpr auto norm_kinds = std::to_array<Kind<NormKind>>({
    {NormKind::pre, "pre", "before each sub-layer"},
    {NormKind::post, "post", "after each residual sum"},
    {NormKind::none, "none", "of shallow models alone"},
});
static_assert(lists_every_kind(norm_kinds));

/// The activation between the two layers of a feed-forward network: GELU (Hendrycks & Gimpel 2016),
/// ReLU, or its square (So et al. 2021, "Primer").
enum class ActivationKind { gelu_tanh, gelu, relu, relu_squared };
inline constexpr auto activation_kinds = std::to_array<Kind<ActivationKind>>({
    {ActivationKind::gelu_tanh, "gelu-tanh", "GELU by the tanh approximation"},
    {ActivationKind::gelu, "gelu", "exact GELU"},
    {ActivationKind::relu, "relu", "max(x, 0)"},
    {ActivationKind::relu_squared, "relu-squared", "max(x, 0)^2"},
});
static_assert(lists_every_kind(activation_kinds));

/// The cell of a recurrent network; see layers/recurrent.h.
enum class CellKind { rnn, gru, lstm };

/// Architecture of a model; the configuration file's [model].
struct ModelOptions {
  ModelKind kind = ModelKind::encoder;
  Index width = 32;    ///< embedding dimension (d_model)
  Index layers = 1;    ///< layers in the stack
  Index heads = 4;     ///< attention heads of a layer; divides width
  Index kv_heads = 0;  ///< heads of keys and values, shared by those of queries; 0: as many
  AttentionKind attention = AttentionKind::learned;
  bool scale = true;  ///< divide scores by sqrt(width / heads)
  PositionKind position = PositionKind::sinusoidal;
  Index max_distance = 8;    ///< of relative positions and windows: farther keys share a bias
  Index feed_forward = 128;  ///< hidden dimension of the feed-forward sub-layer; 0: none
  ActivationKind activation = ActivationKind::gelu_tanh;
  NormKind norm = NormKind::pre;
  bool bias = true;  ///< of linear layers and norms
  EmbeddingKind embedding = EmbeddingKind::learned;
  double embedding_std =
      0.5;  ///< initial standard deviation of embeddings; of a decoder it is 0.02
  std::string embedding_file = {};  ///< word2vec or GloVe text that the embedding starts from
  CellKind cell = CellKind::lstm;   ///< of a recurrent model
  bool bidirectional = false;  ///< a recurrent model of both directions, half of the width each
  double dropout = 0.0;        ///< probability in [0, 1)
  Index max_length = 256;      ///< longest sequence in tokens

  friend bool operator==(const ModelOptions&, const ModelOptions&) = default;
};

/// The output layer on top of a model.
struct HeadOptions {
  bool tied = false;  ///< its weight is the embedding table

  friend bool operator==(const HeadOptions&, const HeadOptions&) = default;
};

}  // namespace qkv
