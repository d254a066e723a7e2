#pragma once

#include "layers/context.h"
#include "layers/linear.h"
#include "layers/options.h"

namespace qkv {

/// The activation of each element.
Tensor activated(const Tensor& x, ActivationKind kind);

/// w_2(activated(w_1(x))), applied to each position alone (Vaswani et al. 2017, 3.3).
struct FeedForward : Module {
  FeedForward(Index width, Index hidden, bool with_bias = true,
              ActivationKind activation = ActivationKind::gelu_tanh);

  /// x [..., D] -> the same shape
  Tensor operator()(const Tensor& x) const;
  /// The formula of the output for an input called `x`.
  std::string formula(std::string_view x) const;
  void visit(ModuleVisitor& visit) override { visit("w_1", w_1)("w_2", w_2); }

  Linear w_1, w_2;
  ActivationKind activation;
};

/// w_2(silu(w_1(x)) w_3(x)), applied to each position alone (Shazeer 2020, "GLU Variants Improve
/// Transformer").
struct SwiGlu : Module {
  SwiGlu(Index width, Index hidden, bool with_bias = false);

  /// x [..., D] -> the same shape
  Tensor operator()(const Tensor& x) const { return w_2(silu(w_1(x)) * w_3(x)); }
  void visit(ModuleVisitor& visit) override { visit("w_1", w_1)("w_2", w_2)("w_3", w_3); }

  Linear w_1, w_2, w_3;
};

}  // namespace qkv
