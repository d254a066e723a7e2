#pragma once

#include <optional>

#include "core/ops.h"
#include "core/parameter.h"

namespace qkv {

/// y = x W^T + b. `weight` [out, in], `bias` [out], as in PyTorch; the weight starts Xavier
/// uniform, the bias at 0.
struct Linear : Module {
  /// `role` is the weight's in the module around this one.
  Linear(Index in, Index out, bool with_bias = true, Role role = Role::weight);

  /// x [..., in] -> [..., out]
  Tensor operator()(const Tensor& x) const;
  /// y of gelu(x), which is not kept for backward.
  Tensor of_gelu(const Tensor& x) const;
  void visit(ModuleVisitor& visit) override;

  Parameter weight;
  std::optional<Parameter> bias;
};

}  // namespace qkv
