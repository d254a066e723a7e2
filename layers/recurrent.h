#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/model.h"

namespace qkv {

/// A kind of cell and its ops, which core/ops.h documents.
struct CellRow {
  CellKind value;
  std::string_view name, help;
  Index gates;  ///< rows of the weights, in widths of a state
  Tensor (*states)(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
                   bool reverse);
  RecurrentOutput (*states_from)(const Tensor& x, const RecurrentWeights& weights,
                                 const Indices& lengths, const RecurrentState& initial,
                                 bool reverse);
};
std::span<const CellRow> cell_kinds();

/// A stack of recurrent layers; each reads the states of the one below. Parameters are named,
/// shaped and initialised as PyTorch's (uniform over +-1 / sqrt(width of a direction)):
/// `weight_ih_l0`, `bias_hh_l1_reverse`.
struct Recurrent : Module {
  /// Throws ValueError when the width of a bidirectional network is odd.
  explicit Recurrent(const ModelOptions& options);

  /// x [B, T, D], lengths [B] -> the states [B, T, D], zeros in padding. Bidirectional, the first
  /// half of a state is the forward direction's, the other the reverse one's. Dropout acts between
  /// the layers.
  Tensor operator()(Tensor x, const Indices& lengths, Context& context) const;
  /// Starts from an initial state and with the last one, both [layers x directions, B, width of a
  /// direction]: layer by layer, forward before reverse, as PyTorch's h_0 and h_n. Empty tensors
  /// stand for zeros; c is the cell state of an lstm. Throws ShapeError when the shapes do not fit.
  RecurrentOutput operator()(Tensor x, const Indices& lengths, const RecurrentState& initial,
                             Context& context) const;
  /// Evaluates: no dropout.
  Tensor operator()(Tensor x, const Indices& lengths) const {
    Context evaluation;
    return (*this)(std::move(x), lengths, evaluation);
  }
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
std::unique_ptr<Model> make_recurrent_model(const ModelOptions& options, Index vocabulary);

}  // namespace qkv
