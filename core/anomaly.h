#pragma once

#include <span>
#include <string_view>

#include "core/error.h"
#include "core/tensor.h"

namespace qkv {

/// An op made a NaN or an infinity out of numbers without.
struct AnomalyError : Error {
  using Error::Error;
};

/// While alive, each op on this thread looks at what it computed, forward and backward, and the
/// first one to make a NaN or an infinity throws AnomalyError, which names it. For finding a fault:
/// every number is read once more.
class DetectAnomaly {
 public:
  DetectAnomaly();
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  bool previous_;
};
bool anomalies_are_detected();

namespace detail {

/// Throws AnomalyError when `y`, computed by `op`, holds a NaN and no input does, or an infinity
/// and all inputs are finite.
void require_no_anomaly(std::string_view op, const Tensor& y, std::span<const Tensor> inputs);
/// Throws AnomalyError when the gradient of input `i` of `op` is not finite.
void require_finite_gradient(std::string_view op, std::size_t i, const Tensor& dx);

}  // namespace detail
}  // namespace qkv
