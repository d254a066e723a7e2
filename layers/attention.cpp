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

/// Each of the G heads of x [B, T, G d_k] as often as it takes to give `heads`: [B, T, H d_k].
Tensor shared_heads(const Tensor& x, Index own, Index heads) {
  if (own == heads) return x;
  const Index batch = x.dim(0), time = x.dim(1), head_width = x.dim(2) / own;
  const Tensor copies = Tensor::zeros({heads / own, 1}, x.dtype());
  return reshape(reshape(x, {batch, time, own, 1, head_width}) + copies,
                 {batch, time, heads * head_width});
}

/// 1 where a query may attend to a key, else 0: [B, Tq, Tk].
Tensor visible(const AttentionMask& mask, Index batch, Index queries, Index keys) {
  std::vector<double> values;
  for (Index b = 0; b < batch; ++b)
    for (Index q = 0; q < queries; ++q)
      for (Index k = 0; k < keys; ++k) {
        const bool padding =
            mask.key_lengths.size() && k >= mask.key_lengths.data()[static_cast<std::size_t>(b)];
        const bool later = mask.causal && k > q + keys - queries;
        values.push_back(padding || later ? 0 : 1);
      }
  return Tensor::from(values, {batch, queries, keys});
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const ModelOptions& model, Random& random, bool cross)
    : options(attention_options(model)),
      cross(cross),
      rotary(model.position == PositionKind::rotary && !cross),
      kv_heads(model.kv_heads && options.heads > 1 ? model.kv_heads : options.heads) {
  require<ValueError>(options.heads % kv_heads == 0,
                      "[attention] {} heads of keys and values do not divide the {} of queries",
                      kv_heads, options.heads);
  const auto projection = [&](std::optional<Linear>& linear, Index in, Index out) {
    linear.emplace(in, out, random, model.bias);
  };
  const Index width = model.width, shared = width / options.heads * kv_heads;
  if (model.attention == AttentionKind::learned) {
    projection(w_q, width, width);
    projection(w_k, width, shared);
  }
  if (model.attention != AttentionKind::parameter_free) {
    projection(w_v, width, shared);
    projection(w_o, width, width);
  }
}

Tensor MultiHeadAttention::placed(const Tensor& x, Index heads, const Context& context) const {
  if (!rotary) return x;
  const Tensor turns = rotary_cos_sin(x.dim(1), x.dim(2) / heads, context.position(), x.dtype());
  return qkv::rotary(x, heads, turns);
}

KeysValues MultiHeadAttention::keys_values(const Tensor& memory, const Context& context) const {
  KeyValueCache* const cache = context.cache();
  if (cache && cross)
    if (const KeysValues* known = cache->find(*this)) return *known;
  const Index key_heads = w_k ? kv_heads : options.heads,
              value_heads = w_v ? kv_heads : options.heads;
  const KeysValues now = {
      shared_heads(placed(projected(w_k, memory), key_heads, context), key_heads, options.heads),
      shared_heads(projected(w_v, memory), value_heads, options.heads)};
  return cache ? cache->append(*this, now) : now;
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& memory,
                                      const AttentionMask& mask, Context& context) const {
  const Tensor q = placed(projected(w_q, query), options.heads, context);
  const auto [k, v] = keys_values(memory, context);
  if (context.records()) {
    context.record(*this, "q", q);
    context.record(*this, "k", k);
    context.record(*this, "v", v);
    context.record(*this, "scale", Tensor::scalar(options.scale));
    context.record(*this, "mask", visible(mask, q.dim(0), q.dim(1), k.dim(1)));
    context.record(*this, "weights", attention_weights(q, k, mask, options));
  }
  AttentionOptions now = options;
  now.dropout = context.dropout_probability(options.dropout);
  const Tensor mixed = attention(q, k, v, mask, now, context.next_random());
  context.record(*this, "mixed", mixed);
  const Tensor output = projected(w_o, mixed);
  context.record(*this, "output", output);
  return output;
}

void MultiHeadAttention::visit(ModuleVisitor& visit) {
  if (w_q) visit("w_q", *w_q)("w_k", *w_k);
  if (w_v) visit("w_v", *w_v)("w_o", *w_o);
}

}  // namespace qkv
