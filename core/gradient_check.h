#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/parameter.h"

namespace qkv {

/// The largest error that a gradient check found.
struct GradientCheck {
  double error = 0;       ///< |analytic - numeric| / max(1, |analytic|, |numeric|)
  std::string parameter;  ///< path of its parameter
  Index element = 0;      ///< and the index of the element
  double analytic = 0;
  double numeric = 0;
};

/// Compares the gradient of `loss`, a function of float64 parameters, with central differences (f(x
/// + h) - f(x - h)) / 2h at every element, h = 1e-5 max(1, |x|). Throws TypeError when a parameter
/// is not float64.
GradientCheck check_gradients(const std::vector<NamedParameter>& parameters,
                              const std::function<Tensor()>& loss);

/// The same for an op: its inputs become parameters, its output is weighted by fixed random
/// values and summed.
GradientCheck check_gradients(const std::vector<Tensor>& inputs,
                              const std::function<Tensor(const std::vector<Tensor>&)>& op);

}  // namespace qkv
