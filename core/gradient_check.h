#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/parameter.h"

namespace qkv {

/// The largest error that a gradient check found.
struct GradientCheck {
  /// |analytic - numeric| / max(scale, |analytic|, |numeric|); infinite when one is not finite.
  double error = 0;
  std::string parameter;  ///< path of its parameter
  Index element = 0;      ///< and the index of the element
  double analytic = 0;
  double numeric = 0;
  Index checked = 0;  ///< elements that were compared, of all parameters that were checked together
  Shape shape = {};   ///< of the parameter
};

struct GradientCheckOptions {
  /// For smaller gradients the absolute error counts, in units of it: differences of a loss are
  /// rounded to about 1e-16 loss / h.
  double scale = 1;
  /// An element with a larger error is compared again with h / 10 and h / 100: where x +- h lie on
  /// either side of a kink, as of relu, the difference is no derivative, and a smaller h helps. A
  /// wrong gradient stays wrong.
  double tolerance = std::numeric_limits<double>::infinity();
  /// Elements that are compared of each parameter: of larger ones a random sample, of which half
  /// have gradients that are not 0 where there are such. Most rows of an embedding table have none.
  Index elements = std::numeric_limits<Index>::max();
  std::uint64_t seed = 1;  ///< of the sample
};

/// Compares the gradient of `loss`, a function of float64 parameters, with central differences (f(x
/// + h) - f(x - h)) / 2h, h = 1e-5 max(1, |x|): the largest error of each parameter. Throws
/// TypeError when a parameter is not float64.
std::vector<GradientCheck> check_each_gradient(const std::vector<NamedParameter>& parameters,
                                               const std::function<Tensor()>& loss,
                                               const GradientCheckOptions& options = {});

/// Checks every element and returns the largest error of all.
GradientCheck check_gradients(const std::vector<NamedParameter>& parameters,
                              const std::function<Tensor()>& loss);

/// Checks the gradients of an op: its inputs become parameters, its output is weighted by fixed
/// random values and summed.
GradientCheck check_gradients(const std::vector<Tensor>& inputs,
                              const std::function<Tensor(const std::vector<Tensor>&)>& op);

}  // namespace qkv
