#pragma once

#include <string>
#include <vector>

#include "core/gradient_check.h"
#include "train/run/run.h"

namespace qkv {

/// How the gradients of a model agree with numeric ones.
struct ModelGradientCheck {
  double loss = 0;                        ///< of the examples
  Index examples = 0;                     ///< training examples in the batch
  std::vector<GradientCheck> parameters;  ///< at least one
  std::vector<std::string> frozen;        ///< paths of the parameters that have no gradient
  double tolerance = 1e-4;                ///< of the errors

  const GradientCheck& worst() const;
  bool passes() const { return worst().error <= tolerance; }
};

/// The standard deviation of the noise that `check_model_gradients` adds to parameters.
inline constexpr double gradient_check_noise = 0.05;

/// Compares the gradient of the training loss with central differences (core/gradient_check.h) for
/// the first examples of the first step. The network becomes float64, and normal noise moves its
/// parameters away from initial zeros, behind which an error could hide. Dropout and negative
/// samples come from one random stream, which is the same for each evaluation of the loss. Of large
/// parameters a sample is compared, which is smaller for large models.
/// Throws UserError when every parameter is frozen.
ModelGradientCheck check_model_gradients(LoadedModel& model);

}  // namespace qkv
