#pragma once

#include "core/ops.h"
#include "core/parameter.h"

namespace qkv {

/// (x - mean) / sqrt(variance + 1e-5) weight + bias over the last axis (Ba et al. 2016). `weight`
/// [D] starts at 1, `bias` [D] at 0.
struct LayerNorm : Module {
  explicit LayerNorm(Index width)
      : weight(Tensor::full({width}, 1)), bias(Tensor::zeros({width})) {}

  /// x [..., D] -> the same shape
  Tensor operator()(const Tensor& x) const { return layer_norm(x, weight, bias); }
  void visit(ModuleVisitor& visit) override { visit("weight", weight)("bias", bias); }

  Parameter weight, bias;
};

}  // namespace qkv
