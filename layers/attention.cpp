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

/// Repeats each of the G = `groups` heads of x [B, T, G d_k] H / G times: [B, T, H d_k].
Tensor repeated_heads(const Tensor& x, Index groups, Index heads) {
  if (groups == heads) return x;
  const Index batch = x.dim(0), time = x.dim(1), head_width = x.dim(2) / groups;
  const Tensor copies = Tensor::zeros({heads / groups, 1}, x.dtype());
  return reshape(reshape(x, {batch, time, groups, 1, head_width}) + copies,
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

/// The mask with the score bias of positions, where these have one.
AttentionMask with_score_bias(AttentionMask mask, const Tensor& bias) {
  if (bias) mask.bias = mask.bias ? mask.bias + bias : bias;
  return mask;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const ModelOptions& model, bool cross)
    : options(attention_options(model)),
      cross(cross),
      kv_heads(model.kv_heads && options.heads > 1 ? model.kv_heads : options.heads) {
  require<ValueError>(options.heads % kv_heads == 0,
                      "[attention] {} heads of keys and values do not divide the {} of queries",
                      kv_heads, options.heads);
  if (!cross) positions = make_attention_positions(model);
  const auto project = [&](std::optional<Linear>& linear, Index in, Index out, Role role) {
    linear.emplace(in, out, model.bias, role);
  };
  const Index width = model.width, shared = width / options.heads * kv_heads;
  if (model.attention == AttentionKind::learned) {
    project(w_q, width, width, Role::query);
    project(w_k, width, shared, Role::key);
  }
  if (model.attention != AttentionKind::parameter_free) {
    project(w_v, width, shared, Role::value);
    project(w_o, width, width, Role::attention_output);
  }
}

Tensor MultiHeadAttention::positioned(const Tensor& x, Index heads, const Context& context) const {
  return positions ? positions->query_key(x, heads, context.position()) : x;
}

KeysValues MultiHeadAttention::keys_values(const Tensor& source, const Context& context) const {
  KeyValueCache* const cache = context.cache();
  if (cache && cross)
    if (const auto cached = cache->find(*this)) return *cached;
  const Index key_heads = w_k ? kv_heads : options.heads,
              value_heads = w_v ? kv_heads : options.heads;
  const KeysValues now = {repeated_heads(positioned(projected(w_k, source), key_heads, context),
                                         key_heads, options.heads),
                          repeated_heads(projected(w_v, source), value_heads, options.heads)};
  return cache ? cache->append(*this, now) : now;
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& source,
                                      const AttentionMask& visible_keys, Context& context) const {
  const Tensor q = positioned(projected(w_q, query), options.heads, context);
  const auto [k, v] = keys_values(source, context);
  const Index first = k.dim(1) - q.dim(1);  // with a cache, keys of earlier queries come first
  const Tensor bias =
      positions ? positions->score_bias(options.heads, first, q.dim(1), k.dim(1), q.dtype())
                : Tensor();
  const AttentionMask mask = with_score_bias(visible_keys, bias);
  if (context.records()) {
    context.record(*this, "q", q);
    context.record(*this, "k", k);
    context.record(*this, "v", v);
    context.record(*this, "scale", Tensor::scalar(options.scale));
    context.record(*this, "cross", Tensor::scalar(cross ? 1 : 0));
    context.record(*this, "mask", visible(mask, q.dim(0), q.dim(1), k.dim(1)));
    const Tensor weights = attention_weights(q, k, mask, options);
    if (mask.bias) context.record(*this, "bias", expand(mask.bias, weights.shape()));
    context.record(*this, "weights", weights);
  }
  AttentionOptions now = options;
  now.dropout = context.dropout_probability(options.dropout);
  const Tensor mixed =
      context.hooked(*this, "mixed", attention(q, k, v, mask, now, context.next_random()));
  return context.hooked(*this, "output", projected(w_o, mixed));
}

std::vector<FormulaSource::Row> MultiHeadAttention::formulas() const {
  if (!w_o) return {{"output", {"o_i", "z_i", "no output projection"}}};
  return {{"output", {"o_i", "W_o z_i + b_o", "output projection"}}};
}

void MultiHeadAttention::visit(ModuleVisitor& visit) {
  if (positions) visit("positions", *positions);
  if (w_q) visit("w_q", *w_q)("w_k", *w_k);
  if (w_v) visit("w_v", *w_v)("w_o", *w_o);
}

}  // namespace qkv
