#pragma once

#include <functional>
#include <vector>

#include "inspect/components.h"

namespace qkv {

/// Evaluates one model on one set of examples.
using Evaluate = std::function<Evaluation(const EvaluationOptions&)>;

/// The value in place of an ablated component's activation: 0, or its mean over all tokens of
/// the examples, which leaves later layers in their usual range (Wang et al. 2022,
/// "Interpretability in the Wild", 2.1).
enum class AblationKind { zero, mean };

/// Evaluates a model with some of its components ablated: what breaks shows what they are for.
class Ablation {
 public:
  /// Throws UserError when the model has no components. `model` must outlive this.
  Ablation(const LoadedModel& model, Evaluate evaluate);

  const std::vector<Component>& components() const { return components_; }
  Evaluation without(const std::vector<Component>& ablated, AblationKind kind) const;

 private:
  /// Sums an activation over tokens.
  struct TokenSum {
    Activation activation;
    Tensor sum;  ///< [D], float64
    Index tokens = 0;
  };

  Evaluate evaluate_;
  std::vector<Component> components_;
  std::vector<TokenSum> sums_;
};

}  // namespace qkv
