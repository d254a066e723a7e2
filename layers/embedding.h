#pragma once

#include "core/ops.h"
#include "core/parameter.h"

namespace qkv {

/// Of the vectors that a model starts with.
constexpr double embedding_deviation = 0.5;

/// One static vector for each token: row `id` of `weight` [V, D], which starts normal with
/// deviation `deviation`.
struct Embedding : Module {
  Embedding(Index vocabulary, Index width, double deviation, Random& random);

  /// ids [B, T] -> [B, T, D]
  Tensor operator()(const Indices& ids) const;
  void visit(ModuleVisitor& visit) override;

  Parameter weight;
};

/// Adds sines and cosines of each position, the first being `first`, to x [B, T, D]: PE(t, 2i) =
/// sin(t / 10000^(2i/D)), PE(t, 2i+1) = cos of the same (Vaswani et al. 2017, 3.5).
Tensor with_sinusoidal_positions(const Tensor& x, Index first = 0);

}  // namespace qkv
