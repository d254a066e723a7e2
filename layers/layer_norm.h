#pragma once

#include <optional>

#include "core/ops.h"
#include "core/parameter.h"

namespace qkv {

/// (x - mean) / sqrt(variance + epsilon) weight + bias over the last axis (Ba et al. 2016).
/// `weight` [D] starts at 1, `bias` [D], which may be left out, at 0.
struct LayerNorm : Module {
  explicit LayerNorm(Index width, bool with_bias = true, double eps = 1e-5)
      : weight(Tensor::full({width}, 1), Role::norm), epsilon(eps) {
    if (with_bias) bias.emplace(Tensor::zeros({width}), Role::bias);
  }

  /// x [..., D] -> the same shape
  Tensor operator()(const Tensor& x) const {
    return layer_norm(x, weight, bias ? bias->value() : Tensor(), epsilon);
  }
  /// The formula of the output for an input called `x`.
  std::string formula(std::string_view x) const {
    const std::string added = epsilon == 1e-5 ? "1e-5" : fmt::format("{:.0e}", epsilon);
    return fmt::format("({0} - mean({0})) / sqrt(var({0}) + {1}) * g + b", x, added);
  }
  void visit(ModuleVisitor& visit) override {
    visit("weight", weight);
    if (bias) visit("bias", *bias);
  }

  Parameter weight;
  std::optional<Parameter> bias;
  double epsilon;
};

/// x / sqrt(mean(x^2) + epsilon) weight over the last axis (Zhang & Sennrich 2019). `weight` [D]
/// starts at 1.
struct RmsNorm : Module {
  explicit RmsNorm(Index width, double eps = 1e-5)
      : weight(Tensor::full({width}, 1), Role::norm), epsilon(eps) {}

  /// x [..., D] -> the same shape
  Tensor operator()(const Tensor& x) const { return rms_norm(x, weight, epsilon); }
  void visit(ModuleVisitor& visit) override { visit("weight", weight); }

  Parameter weight;
  double epsilon;
};

}  // namespace qkv
