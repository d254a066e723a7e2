#pragma once

#include <optional>
#include <vector>

#include "layers/attention.h"
#include "layers/feed_forward.h"
#include "layers/layer_norm.h"

namespace qkv {

/// A block of the encoder, normalised before each part (Xiong et al. 2020, "On Layer Normalization
/// in the Transformer Architecture"):
///
///   x = x + dropout(attention(norm_1(x)))
///   x = x + dropout(feed_forward(norm_2(x)))
///
/// With parameter-free attention a block is softmax(x x^T) x and nothing else.
struct EncoderBlock : Module {
  EncoderBlock(const ModelOptions& options, Random& random);

  /// x [B, T, D] -> the same shape
  Tensor operator()(Tensor x, const AttentionMask& mask, Context& context) const;
  void visit(ModuleVisitor& visit) override;

  double dropout;
  MultiHeadAttention attention;
  std::optional<LayerNorm> norm_1, norm_2;
  std::optional<FeedForward> feed_forward;
};

/// A stack of blocks and a last normalisation. Records each block's output as "layers.N.output" and
/// the result as "output".
struct Encoder : Module {
  Encoder(const ModelOptions& options, Random& random);

  /// x [B, T, D] -> the same shape
  Tensor operator()(Tensor x, const AttentionMask& mask, Context& context) const;
  void visit(ModuleVisitor& visit) override;

  std::vector<EncoderBlock> layers;
  std::optional<LayerNorm> norm;
};

}  // namespace qkv
