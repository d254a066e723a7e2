#pragma once

#include "optim/options.h"
#include "tests/ops/case.h"

namespace qkv::fuzz {

/// Draws layers of layers/, by their names.
const std::map<std::string, OpDraw>& module_draws();

/// The value of a parameter after a step for each row of gradients.
Tensor stepped(const Tensor& value, const Tensor& gradients, const OptimizerOptions& options);
void draw_optimizer(Builder& b);

/// The case of these choices.
Case draw_case(Draw& draw);

}  // namespace qkv::fuzz
