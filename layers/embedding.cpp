#include "layers/embedding.h"

#include <algorithm>

#include "layers/initialise.h"

namespace qkv {
namespace {

/// Draws a table in which one row is zeros.
Initialiser with_zeros_in(Index row, Initialiser table) {
  return [row, table = std::move(table)](const Shape& shape, const Random& random) {
    Tensor drawn = table(shape, random);
    std::ranges::fill_n(drawn.mutable_data<float>().begin() + row * shape[1], shape[1], 0.0f);
    return drawn;
  };
}

}  // namespace

Embedding::Embedding(Index vocabulary, Index width, double std, std::optional<Index> padding_idx)
    : weight({vocabulary, width},
             padding_idx ? with_zeros_in(*padding_idx, normal(std)) : normal(std), Role::embedding),
      padding_idx(padding_idx) {
  if (!padding_idx) return;
  require<IndexError>(*padding_idx >= 0 && *padding_idx < vocabulary,
                      "[embedding] padding_idx {} is outside the table of {} rows", *padding_idx,
                      vocabulary);
}

Tensor Embedding::operator()(const Indices& ids) const {
  return embedding(weight, ids, padding_idx);
}

void Embedding::visit(ModuleVisitor& visit) {
  visit("weight", weight);
}

}  // namespace qkv
