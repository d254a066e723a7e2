#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "layers/attention.h"
#include "layers/feed_forward.h"
#include "layers/layer_norm.h"
#include "layers/model.h"

namespace qkv {

/// Masks and encoder output of a block's attention.
struct AttentionInputs {
  AttentionMask mask = {};       ///< of self-attention
  Tensor encoded = {};           ///< encoder output [B, Ts, D], for cross-attention
  Indices encoded_lengths = {};  ///< [B]; of sequence b the first encoded_lengths[b] are visible
};

/// A block: self-attention, with `cross` cross-attention, and a feed-forward network, each with a
/// residual connection. NormKind::pre normalizes the input of each sub-layer (Xiong et al. 2020,
/// "On Layer Normalization in the Transformer Architecture"), NormKind::post the sum (Vaswani et
/// al. 2017):
///
///     pre   x = x + dropout(sublayer(norm(x)))
///     post  x = norm(x + dropout(sublayer(x)))
///     none  x = x + dropout(sublayer(x))
///
/// With parameter-free attention a block is softmax(x x^T / sqrt(D)) x and nothing else.
struct TransformerBlock : Module, FormulaSource {
  explicit TransformerBlock(const ModelOptions& options, bool cross = false);

  /// x [B, T, D] -> the same shape. Records the "output" of each sub-layer and norm, x after
  /// self-attention as "attended", after cross-attention as "cross_attended", and "output". A hook
  /// may replace the outputs of the block and of its sub-layers.
  Tensor operator()(Tensor x, const AttentionInputs& inputs, Context& context) const;
  /// Evaluates: no dropout, nothing is recorded.
  Tensor operator()(Tensor x, const AttentionInputs& inputs = {}) const {
    Context evaluation;
    return (*this)(std::move(x), inputs, evaluation);
  }
  void visit(ModuleVisitor& visit) override;
  std::vector<Row> formulas() const override;

  NormKind norm;
  double dropout;
  MultiHeadAttention attention;
  std::optional<MultiHeadAttention> cross_attention;
  std::optional<FeedForward> feed_forward;
  std::optional<LayerNorm> norm_1, norm_cross, norm_2;
  bool residual = false;  ///< around the sub-layers; with parameter-free attention there is none

 private:
  template <class Sublayer>
  Tensor with_residual(const Tensor& x, const std::optional<LayerNorm>& norm,
                       std::string_view norm_output, Sublayer sublayer, Context& context) const;
};

/// A stack of blocks: an encoder, or with a causal mask a decoder. With NormKind::pre a last norm
/// follows. Records what enters the first block as "input", each block's output as
/// "layers.N.output" and the result as "output"; a hook may replace the first two.
struct Transformer : Module, FormulaSource {
  explicit Transformer(const ModelOptions& options, bool cross = false);

  /// x [B, T, D] -> the same shape
  Tensor operator()(Tensor x, const AttentionInputs& inputs, Context& context) const;
  /// Evaluates: no dropout, nothing is recorded.
  Tensor operator()(Tensor x, const AttentionInputs& inputs = {}) const {
    Context evaluation;
    return (*this)(std::move(x), inputs, evaluation);
  }
  void visit(ModuleVisitor& visit) override;
  std::vector<Row> formulas() const override;

  std::vector<TransformerBlock> layers;
  std::optional<LayerNorm> norm;
};

/// Embedding, positions and stacks of blocks: an encoder, a decoder with causal self-attention, or
/// both.
std::unique_ptr<Model> make_transformer_model(const ModelOptions& options, Index vocabulary);

}  // namespace qkv
