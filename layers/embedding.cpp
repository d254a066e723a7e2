#include "layers/embedding.h"

#include <algorithm>

#include "layers/initialise.h"

namespace qkv {

Embedding::Embedding(Index vocabulary, Index width, double std, Random& random,
                     std::optional<Index> padding_idx)
    : weight(normal({vocabulary, width}, std, random.next()), Role::embedding),
      padding_idx(padding_idx) {
  if (!padding_idx) return;
  require<IndexError>(*padding_idx >= 0 && *padding_idx < vocabulary,
                      "[embedding] padding_idx {} is outside the table of {} rows", *padding_idx,
                      vocabulary);
  std::ranges::fill_n(weight.mutable_data<float>().begin() + *padding_idx * width, width, 0.0f);
}

Tensor Embedding::operator()(const Indices& ids) const {
  return embedding(weight, ids, padding_idx);
}

void Embedding::visit(ModuleVisitor& visit) {
  visit("weight", weight);
}

}  // namespace qkv
