#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "layers/context.h"
#include "layers/linear.h"
#include "layers/options.h"
#include "layers/positions.h"

namespace qkv {

// clang-format off
/// Scaled dot-product attention with several heads (Vaswani et al. 2017, 3.2), in three forms:
///
///     learned         w_o(concat over heads of softmax(q_h k_h^T / sqrt(d_k)) v_h)
///                     with q, k, v = w_q(x), w_k(x), w_v(x)
///     uniform         the same with equal weights for all keys: only w_v and w_o are learned
///     parameter-free  softmax(x x^T / sqrt(D)) x with one head: nothing is learned, as tutorials
///                     build attention first
///
/// With fewer heads of keys and values than of queries, several query heads share one (Ainslie et
/// al. 2023, "GQA"). d_k = D / H is the width of a head. With `scale` off, scores are not divided
/// by sqrt(d_k).
// clang-format on
struct MultiHeadAttention : Module, FormulaSource {
  /// Throws ValueError when the heads do not divide the width.
  /// `cross`: keys and values come from another sequence, which has no common positions with the
  /// queries'.
  explicit MultiHeadAttention(const ModelOptions& options, bool cross = false);

  /// query [B, Tq, D], source of keys and values [B, Tk, D] -> [B, Tq, D]; self-attention when both
  /// are the same. With a cache, self-attention also attends to the cached keys, and
  /// cross-attention computes keys and values once.
  /// Records "q", "k" and "v" with shared heads repeated, "scale", "cross" (1 or 0), "mask"
  /// [B, Tq, Tk] (1: visible, 0: not), "bias" [B, H, Tq, Tk] where one is added to the scores,
  /// "weights" [B, H, Tq, Tk], "mixed" (the heads' weighted sums side by side) and "output";
  /// a hook may replace the last two.
  Tensor operator()(const Tensor& query, const Tensor& source, const AttentionMask& mask,
                    Context& context) const;
  /// Evaluates: no dropout, nothing is recorded.
  Tensor operator()(const Tensor& query, const Tensor& source,
                    const AttentionMask& mask = {}) const {
    Context evaluation;
    return (*this)(query, source, mask, evaluation);
  }
  void visit(ModuleVisitor& visit) override;
  std::vector<Row> formulas() const override;

  AttentionOptions options;
  bool cross;
  Index kv_heads;
  std::unique_ptr<AttentionPositions> positions;  ///< null: none act here
  std::optional<Linear> w_q, w_k, w_v, w_o;

 private:
  Tensor positioned(const Tensor& x, Index heads, const Context& context) const;
  KeysValues keys_values(const Tensor& source, const Context& context) const;
};

}  // namespace qkv
