#pragma once

#include <optional>

#include "core/ops.h"
#include "core/parameter.h"

namespace qkv {

/// Counts of the vectors that a file had for a vocabulary (layers/pretrained.h).
struct VectorsFound {
  Index words = 0;              ///< without "<pad>" and "<unk>"
  Index found = 0;              ///< those that have a vector
  Index repeated = 0;           ///< vectors of words that had one
  bool lacks_line_end = false;  ///< in its last line, which may be cut off
};

/// One static vector for each token: row `id` of `weight` [V, D], which starts normal with standard
/// deviation `std`. The row `padding_idx` starts at zeros and receives no gradient.
struct Embedding : Module {
  /// Throws IndexError when padding_idx is outside [0, vocabulary).
  Embedding(Index vocabulary, Index width, double std = 1, std::optional<Index> padding_idx = {});

  /// ids [B, T] -> [B, T, D]
  Tensor operator()(const Indices& ids) const;
  void visit(ModuleVisitor& visit) override;

  Parameter weight;
  std::optional<Index> padding_idx;
};

}  // namespace qkv
