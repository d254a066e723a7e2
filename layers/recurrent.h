#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/model.h"

namespace qkv {

/// Recurrent layers on top of each other; each reads the states of the one below. Cells and their
/// papers: `rnn`, `gru` and `lstm` in core/ops.h. Parameters are named, shaped and initialised as
/// PyTorch's (uniform over +-1 / sqrt(width of a direction)): `weight_ih_l0`, `bias_hh_l1_reverse`.
struct Recurrent : Module {
  /// Throws ValueError when the width of a bidirectional network is odd.
  Recurrent(const ModelOptions& options, Random& random);

  /// x [B, T, D], lengths [B] -> the states [B, T, D], zeros in padding. Bidirectional, the first
  /// half of a state comes from a network that reads forwards, the other from one that reads
  /// backwards. Dropout acts between the layers.
  Tensor operator()(Tensor x, const Indices& lengths, Context& context) const;
  /// The same from an initial state and with the last one, both [layers x directions, B, width of a
  /// direction]: layer by layer, forwards before backwards, as PyTorch's h_0 and h_n. Empty tensors
  /// stand for zeros; c is an lstm's. Throws ShapeError when the shapes do not fit.
  RecurrentOutput operator()(Tensor x, const Indices& lengths, const RecurrentState& initial,
                             Context& context) const;
  void visit(ModuleVisitor& visit) override;

  /// One layer's network of one direction.
  struct Direction {
    std::string suffix;  ///< "_l0_reverse"
    bool reverse;
    Parameter weight_ih, weight_hh, bias_ih, bias_hh;
  };

  CellKind cell;
  double dropout;
  std::vector<std::vector<Direction>> layers;

 private:
  template <class States>
  Tensor through_layers(Tensor x, Context& context, States states) const;
};

/// Embedding and recurrent layers. A sentence's vector is the state after its last token, and for
/// the reverse direction that after its first.
std::unique_ptr<Model> make_recurrent_model(const ModelOptions& options, Index vocabulary,
                                            Random& random);

}  // namespace qkv
