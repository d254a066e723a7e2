#pragma once

#include "optim/adam.h"

namespace qkv {

/// Muon (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks") for the
/// matrices that `orthogonalises` names, AdamW for the other parameters:
///
///     m = beta1 m + (1 - beta1) g
///     u = orthogonal((1 - beta1) g + beta1 m)              Nesterov's look-ahead
///     value -= lr weight_decay value
///     value -= lr 0.2 sqrt(max(rows, columns)) u
///
/// The last factor gives u the root mean square of 0.2 that AdamW's updates have, so that one
/// learning rate and weight decay serve both (Liu et al. 2025, "Muon is Scalable for LLM Training").
/// A tensor of more axes is the matrix [first, all others].
class Muon final : public Adam {
 public:
  explicit Muon(const OptimizerOptions& options) : Adam(options) {}

 private:
  Index slots_of(const Parameter& parameter) const override;
  void update(const Section& section, double learning_rate, std::int64_t step) const override;
  void update_whole(const Section& section, double learning_rate) const override;
};

/// Whether Muon orthogonalises the updates of a parameter: of hidden layers' weights, but not of
/// embeddings and the output layer, whose rows stand for tokens.
bool orthogonalises(const Parameter& parameter);

}  // namespace qkv
