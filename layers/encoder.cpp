#include "layers/encoder.h"

namespace qkv {

EncoderBlock::EncoderBlock(const ModelOptions& options, Random& random)
    : dropout(options.dropout), attention(options, random) {
  if (options.attention == AttentionKind::parameter_free) return;
  norm_1.emplace(options.width, options.bias);
  if (options.feed_forward == 0) return;
  norm_2.emplace(options.width, options.bias);
  feed_forward.emplace(options.width, options.feed_forward, random, options.bias);
}

Tensor EncoderBlock::operator()(Tensor x, const AttentionMask& mask, Context& context) const {
  if (norm_1) {
    const Tensor h = (*norm_1)(x);
    x = x + context.dropped(attention(h, h, mask, context), dropout);
  } else {
    x = attention(x, x, mask, context);
  }
  if (feed_forward) x = x + context.dropped((*feed_forward)((*norm_2)(x)), dropout);
  context.record(*this, "output", x);
  return x;
}

void EncoderBlock::visit(ModuleVisitor& visit) {
  if (norm_1) visit("norm_1", *norm_1);
  visit("attention", attention);
  if (feed_forward) visit("norm_2", *norm_2)("feed_forward", *feed_forward);
}

Encoder::Encoder(const ModelOptions& options, Random& random) {
  for (Index i = 0; i < options.layers; ++i) layers.emplace_back(options, random);
  if (options.attention != AttentionKind::parameter_free) norm.emplace(options.width, options.bias);
}

Tensor Encoder::operator()(Tensor x, const AttentionMask& mask, Context& context) const {
  for (const EncoderBlock& layer : layers) x = layer(x, mask, context);
  if (norm) x = (*norm)(x);
  context.record(*this, "output", x);
  return x;
}

void Encoder::visit(ModuleVisitor& visit) {
  visit("layers", layers);
  if (norm) visit("norm", *norm);
}

}  // namespace qkv
