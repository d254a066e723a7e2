#pragma once

#include "tests/ops/check.h"

namespace qkv::fuzz {

/// A call of an op with ordinary operands, of which neither an infinity nor a tie or a kink makes a
/// derivative uncertain. Where an op's results are constants, such as those of a comparison, the
/// sum of its first operand is added.
struct OpSample {
  std::string op;  ///< name of the function in core/ops.h, or of a layer
  int number = 0;  ///< among those of the op
  Case call;

  std::string label() const { return fmt::format("{}: {}", op, number); }
  /// The call in C++, with x0, x1, ... for the inputs.
  std::string code() const;
  /// Whether the op takes an operand, or a part of one, for a constant, so that its gradients
  /// differ from numeric derivatives.
  bool detaches() const;
};

/// Eight calls of every row of a table, always the same.
std::vector<OpSample> samples_of(const std::map<std::string, OpDraw>& rows);
/// Samples of all ops.
const std::vector<OpSample>& op_samples();

}  // namespace qkv::fuzz
