#include "layers/embedding.h"

#include <cmath>

#include "layers/initialise.h"

namespace qkv {

Embedding::Embedding(Index vocabulary, Index width, double deviation, Random& random)
    : weight(normal({vocabulary, width}, deviation, random.next())) {}

Tensor Embedding::operator()(const Indices& ids) const {
  return embedding(weight, ids);
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
