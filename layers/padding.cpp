#include "layers/padding.h"

namespace qkv {

Tensor without_padding(const Tensor& x, const Indices& lengths) {
  if (lengths.size() == 0) return x;
  std::vector<double> counts;
  for (const auto length : lengths.data())
    for (Index t = 0; t < x.dim(1); ++t) counts.push_back(t < length ? 1 : 0);
  return x * Tensor::from(counts, {x.dim(0), x.dim(1), 1}, x.dtype());
}

}  // namespace qkv
