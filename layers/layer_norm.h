#pragma once

#include <optional>

#include "core/ops.h"
#include "core/parameter.h"

namespace qkv {

/// (x - mean) / sqrt(variance + 1e-5) weight + bias over the last axis (Ba et al. 2016). `weight`
/// [D] starts at 1, `bias` [D], which may be left out, at 0.
struct LayerNorm : Module {
  explicit LayerNorm(Index width, bool with_bias = true) : weight(Tensor::full({width}, 1)) {
    if (with_bias) bias.emplace(Tensor::zeros({width}));
  }

  /// x [..., D] -> the same shape
  Tensor operator()(const Tensor& x) const {
    return layer_norm(x, weight, bias ? bias->value() : Tensor());
  }
  void visit(ModuleVisitor& visit) override {
    visit("weight", weight);
    if (bias) visit("bias", *bias);
  }

  Parameter weight;
  std::optional<Parameter> bias;
};

}  // namespace qkv
