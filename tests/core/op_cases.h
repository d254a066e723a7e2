#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/ops.h"

namespace qkv::tests {

using In = std::vector<Tensor>;

/// One way of calling an op: random inputs of these shapes, uniform over [low, high).
struct OpCase {
  std::string op;    ///< name of the function in core/ops.h
  std::string what;  ///< what is special about this call
  std::vector<Shape> shapes;
  std::function<Tensor(const In&)> call;
  double low = -2, high = 2;

  std::string label() const { return op + ": " + what; }
};

/// The table of op samples, a file for each family in tests/core/op_cases/. All sizes of a case
/// differ where they can, so that mixing up two axes cannot go unnoticed. To add an op, add its
/// rows there: a test fails for an op of core/ops.h without one.
const std::vector<OpCase>& elementwise_cases();
const std::vector<OpCase>& shape_cases();
const std::vector<OpCase>& reduction_cases();
const std::vector<OpCase>& layer_cases();
const std::vector<OpCase>& recurrent_cases();
const std::vector<OpCase>& loss_cases();
/// All of them.
const std::vector<OpCase>& op_cases();

/// The inputs of a case, the same on every call.
In inputs_of(const OpCase& sample, DType dtype);

}  // namespace qkv::tests
