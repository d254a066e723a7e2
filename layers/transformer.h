#pragma once

#include <optional>
#include <vector>

#include "layers/attention.h"
#include "layers/feed_forward.h"
#include "layers/layer_norm.h"

namespace qkv {

/// What a block works on: the mask of its own tokens, and for cross-attention the vectors
/// [B, Tm, D] of others, of which the first memory_lengths[b] count.
struct Surroundings {
  AttentionMask mask;
  Tensor memory;
  Indices memory_lengths;
};

/// A block: self-attention, with `cross` attention to a memory, and a feed-forward part, each added
/// to what it starts from. NormKind::pre normalises before each part (Xiong et al. 2020, "On Layer
/// Normalization in the Transformer Architecture"), NormKind::post after each sum (Vaswani et al.
/// 2017):
///
///   pre   x = x + dropout(part(norm(x)))
///   post  x = norm(x + dropout(part(x)))
///
/// With parameter-free attention a block is softmax(x x^T / sqrt(D)) x and nothing else.
struct TransformerBlock : Module {
  TransformerBlock(const ModelOptions& options, Random& random, bool cross = false);

  /// x [B, T, D] -> the same shape. Records the "output" of each part and norm, x after
  /// self-attention as "attended", after cross-attention as "informed", and "output".
  Tensor operator()(Tensor x, const Surroundings& around, Context& context) const;
  void visit(ModuleVisitor& visit) override;

  NormKind norm;
  double dropout;
  MultiHeadAttention attention;
  std::optional<MultiHeadAttention> cross_attention;
  std::optional<FeedForward> feed_forward;
  std::optional<LayerNorm> norm_1, norm_cross, norm_2;

 private:
  template <class Part>
  Tensor added(const Tensor& x, const LayerNorm& norm, Part part, Context& context) const;
};

/// A stack of blocks: an encoder, or with a causal mask a decoder. Blocks that normalise before
/// their parts are followed by a last normalisation. Records each block's output as
/// "layers.N.output" and the result as "output".
struct Transformer : Module {
  Transformer(const ModelOptions& options, Random& random, bool cross = false);

  /// x [B, T, D] -> the same shape
  Tensor operator()(Tensor x, const Surroundings& around, Context& context) const;
  void visit(ModuleVisitor& visit) override;

  std::vector<TransformerBlock> layers;
  std::optional<LayerNorm> norm;
};

}  // namespace qkv
