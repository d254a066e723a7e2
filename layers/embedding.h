#pragma once

#include <optional>

#include "core/ops.h"
#include "core/parameter.h"

namespace qkv {

/// Of the vectors that a model starts with.
constexpr double embedding_deviation = 0.5;

/// One static vector for each token: row `id` of `weight` [V, D], which starts normal with standard
/// deviation `deviation` (PyTorch: 1). The row `padding_idx` starts at zeros and receives no
/// gradient.
struct Embedding : Module {
  /// Throws IndexError when padding_idx is outside [0, vocabulary).
  Embedding(Index vocabulary, Index width, double deviation, Random& random,
            std::optional<Index> padding_idx = {});

  /// ids [B, T] -> [B, T, D]
  Tensor operator()(const Indices& ids) const;
  void visit(ModuleVisitor& visit) override;

  Parameter weight;
  std::optional<Index> padding_idx;
};

/// Adds sines and cosines of each position, the first being `first`, to x [B, T, D]: PE(t, 2i) =
/// sin(t / 10000^(2i/D)), PE(t, 2i+1) = cos of the same (Vaswani et al. 2017, 3.5).
Tensor with_sinusoidal_positions(const Tensor& x, Index first = 0);

}  // namespace qkv
