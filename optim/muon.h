#pragma once

#include "optim/adam.h"

namespace qkv {

/// Muon (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks") for the
/// matrices of hidden layers, AdamW for the other parameters: vectors, and tables and output layers
/// with a row for each token or class.
///
///     m = beta1 m + (1 - beta1) g
///     u = orthogonal((1 - beta1) g + beta1 m)
///     value -= lr weight_decay value
///     value -= lr 0.2 sqrt(max(rows, columns)) u
///
/// The last factor gives an update the root mean square of AdamW's, about 0.2 lr, so that one
/// learning rate and one weight decay serve all parameters (Liu et al. 2025, "Muon is Scalable for
/// LLM Training"). Kernels of more than two axes are matrices [first axis, the others].
class Muon final : public Adam {
 public:
  explicit Muon(const OptimizerOptions& options) : Adam(options) {}

  /// A hidden layer's matrix has the first moment alone.
  Index slots(const Parameter& parameter) const override;

 private:
  bool updates_whole(const Parameter& parameter) const override;
  void update(const Section& section, double learning_rate, std::int64_t step) const override;
};

}  // namespace qkv
