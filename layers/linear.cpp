#include "layers/linear.h"

#include "layers/initialise.h"

namespace qkv {

Linear::Linear(Index in, Index out, bool with_bias, Role role)
    : weight({out, in}, xavier_uniform(), role) {
  if (with_bias) bias.emplace(Tensor::zeros({out}), Role::bias);
}

Tensor Linear::operator()(const Tensor& x) const {
  return linear(x, weight, bias ? bias->value() : Tensor());
}

Tensor Linear::of_gelu(const Tensor& x) const {
  return gelu_linear(x, weight, bias ? bias->value() : Tensor());
}

void Linear::visit(ModuleVisitor& visit) {
  visit("weight", weight);
  if (bias) visit("bias", *bias);
}

}  // namespace qkv
