#pragma once

#include <optional>

#include "layers/context.h"
#include "layers/linear.h"
#include "layers/options.h"

namespace qkv {

/// Scaled dot-product attention with several heads (Vaswani et al. 2017, 3.2), in three forms:
///
///   learned         w_o(concat over heads of softmax(q_h k_h^T / sqrt(d_k)) v_h), with q, k, v =
///   w_q(x), w_k(x), w_v(x) uniform         the same with equal weights for all keys: only w_v and
///   w_o are learned parameter-free  softmax(x x^T) x: nothing is learned, as tutorials build
///   attention first; one head
///
/// d_k = D / H is the width of a head. With `scale` off, scores are not divided by sqrt(d_k).
struct MultiHeadAttention : Module {
  /// Throws ValueError when the heads do not divide the width.
  MultiHeadAttention(const ModelOptions& options, Random& random);

  /// query [B, Tq, D], memory [B, Tk, D] -> [B, Tq, D]; self-attention when both are the same.
  /// Records "q", "k", "v" and "weights" [B, H, Tq, Tk].
  Tensor operator()(const Tensor& query, const Tensor& memory, const AttentionMask& mask,
                    Context& context) const;
  void visit(ModuleVisitor& visit) override;

  AttentionOptions options;
  bool rotary;
  std::optional<Linear> w_q, w_k, w_v, w_o;
};

}  // namespace qkv
