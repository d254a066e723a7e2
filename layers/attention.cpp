#include "layers/attention.h"

#include <cmath>

namespace qkv {
namespace {

AttentionOptions attention_options(const ModelOptions& model) {
  const Index heads = model.attention == AttentionKind::parameter_free ? 1 : model.heads;
  require<ValueError>(heads >= 1 && model.width % heads == 0,
                      "[attention] {} heads do not divide the width {}", heads, model.width);
  const Index head_width = model.width / heads;
  double scale = model.scale ? 1 / std::sqrt(static_cast<double>(head_width)) : 1;
  if (model.attention == AttentionKind::uniform) scale = 0;
  return {.heads = heads, .scale = scale, .dropout = model.dropout};
}

Tensor projected(const std::optional<Linear>& projection, const Tensor& x) {
  return projection ? (*projection)(x) : x;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const ModelOptions& model, Random& random)
    : options(attention_options(model)), rotary(model.position == PositionKind::rotary) {
  const auto projection = [&](std::optional<Linear>& linear) {
    linear.emplace(model.width, model.width, random, model.bias);
  };
  if (model.attention == AttentionKind::learned) projection(w_q), projection(w_k);
  if (model.attention != AttentionKind::parameter_free) projection(w_v), projection(w_o);
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& memory,
                                      const AttentionMask& mask, Context& context) const {
  const auto placed = [&](const Tensor& x) {
    return rotary ? qkv::rotary(x, options.heads,
                                rotary_turns(x.dim(1), x.dim(2) / options.heads, 0, x.dtype()))
                  : x;
  };
  const Tensor q = placed(projected(w_q, query)), k = placed(projected(w_k, memory));
  const Tensor v = projected(w_v, memory);
  if (context.records()) {
    context.record(*this, "q", q);
    context.record(*this, "k", k);
    context.record(*this, "v", v);
    context.record(*this, "weights", attention_weights(q, k, mask, options));
  }
  AttentionOptions now = options;
  now.dropout = context.dropout_probability(options.dropout);
  return projected(w_o, attention(q, k, v, mask, now, context.next_random()));
}

void MultiHeadAttention::visit(ModuleVisitor& visit) {
  if (w_q) visit("w_q", *w_q)("w_k", *w_k);
  if (w_v) visit("w_v", *w_v)("w_o", *w_o);
}

}  // namespace qkv
