#include "layers/transformer.h"

namespace qkv {

TransformerBlock::TransformerBlock(const ModelOptions& options, Random& random, bool cross)
    : norm(options.norm), dropout(options.dropout), attention(options, random) {
  if (options.attention == AttentionKind::parameter_free) return;
  norm_1.emplace(options.width, options.bias);
  if (cross) {
    norm_cross.emplace(options.width, options.bias);
    cross_attention.emplace(options, random, true);
  }
  if (options.feed_forward == 0) return;
  norm_2.emplace(options.width, options.bias);
  feed_forward.emplace(options.width, options.feed_forward, random, options.bias);
}

template <class Part>
Tensor TransformerBlock::added(const Tensor& x, const LayerNorm& layer_norm, Part part,
                               Context& context) const {
  const auto normalised = [&](const Tensor& y) {
    Tensor h = layer_norm(y);
    context.record(layer_norm, "output", h);
    return h;
  };
  // A function of its own lets go of its intermediate values before the addition.
  const auto change = [&] {
    return context.dropped(part(norm == NormKind::post ? x : normalised(x)), dropout);
  };
  return norm == NormKind::post ? normalised(x + change()) : x + change();
}

Tensor TransformerBlock::operator()(Tensor x, const Surroundings& around, Context& context) const {
  const auto attend = [&](const Tensor& h) { return attention(h, h, around.mask, context); };
  x = norm_1 ? added(x, *norm_1, attend, context) : attend(x);
  if (cross_attention) {
    const AttentionMask mask{around.memory_lengths, false};
    const auto look = [&](const Tensor& h) {
      return (*cross_attention)(h, around.memory, mask, context);
    };
    context.record(*this, "attended", x);
    x = added(x, *norm_cross, look, context);
  }
  if (feed_forward) {
    const auto transform = [&](const Tensor& h) {
      const Tensor f = (*feed_forward)(h);
      context.record(*feed_forward, "output", f);
      return f;
    };
    context.record(*this, cross_attention ? "informed" : "attended", x);
    x = added(x, *norm_2, transform, context);
  }
  context.record(*this, "output", x);
  return x;
}

void TransformerBlock::visit(ModuleVisitor& visit) {
  if (norm_1) visit("norm_1", *norm_1);
  visit("attention", attention);
  if (cross_attention) visit("norm_cross", *norm_cross)("cross_attention", *cross_attention);
  if (feed_forward) visit("norm_2", *norm_2)("feed_forward", *feed_forward);
}

Transformer::Transformer(const ModelOptions& options, Random& random, bool cross) {
  for (Index i = 0; i < options.layers; ++i) layers.emplace_back(options, random, cross);
  const bool normalises = options.attention != AttentionKind::parameter_free;
  if (normalises && options.norm == NormKind::pre) norm.emplace(options.width, options.bias);
}

Tensor Transformer::operator()(Tensor x, const Surroundings& around, Context& context) const {
  for (const TransformerBlock& layer : layers) x = layer(std::move(x), around, context);
  if (norm) {
    x = (*norm)(x);
    context.record(*norm, "output", x);
  }
  context.record(*this, "output", x);
  return x;
}

void Transformer::visit(ModuleVisitor& visit) {
  visit("layers", layers);
  if (norm) visit("norm", *norm);
}

}  // namespace qkv
