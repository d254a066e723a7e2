#pragma once

#include <span>
#include <string_view>

#include "core/error.h"
#include "core/execution.h"
#include "core/tensor.h"

namespace qkv {

/// An op produced NaN or Inf from finite inputs.
struct AnomalyError : Error {
  using Error::Error;
};

/// While alive, each op on this thread checks its result, forward and backward, and the first one
/// to produce NaN or Inf throws AnomalyError, which names it. For debugging: every element is read
/// once more.
class DetectAnomaly {
 public:
  DetectAnomaly() : scope_(Execution::current().with(&Execution::detects_anomaly, true)) {}

 private:
  ExecutionScope scope_;
};

namespace detail {

/// Throws AnomalyError when `y`, computed by `op`, holds a NaN and no input does, or an infinity
/// and all inputs are finite.
void require_no_anomaly(std::string_view op, const Tensor& y, std::span<const Tensor> inputs);
/// Throws AnomalyError when the gradient of input `i` of `op` is not finite.
void require_finite_gradient(std::string_view op, std::size_t i, const Tensor& dx);

}  // namespace detail
}  // namespace qkv
