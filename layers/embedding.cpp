#include "layers/embedding.h"

#include <algorithm>
#include <cmath>

#include "layers/initialise.h"

namespace qkv {

Embedding::Embedding(Index vocabulary, Index width, double deviation, Random& random,
                     std::optional<Index> padding_idx)
    : weight(normal({vocabulary, width}, deviation, random.next())), padding_idx(padding_idx) {
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

Tensor with_sinusoidal_positions(const Tensor& x, Index first) {
  const Index time = x.dim(-2), width = x.dim(-1);
  std::vector<double> encoding;
  encoding.reserve(static_cast<std::size_t>(time * width));
  for (Index t = first; t < first + time; ++t)
    for (Index i = 0; i < width; ++i) {
      const Index pair = i / 2;
      const double exponent = static_cast<double>(2 * pair) / static_cast<double>(width);
      const double angle = static_cast<double>(t) / std::pow(10000.0, exponent);
      encoding.push_back(i % 2 ? std::cos(angle) : std::sin(angle));
    }
  return x + Tensor::from(encoding, {time, width}, x.dtype());
}

}  // namespace qkv
