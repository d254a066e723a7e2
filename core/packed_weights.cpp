#include "core/packed_weights.h"

namespace qkv {

const kernels::Strips* PackedWeights::find(const Tensor& weight) {
  const float* elements = weight.data<float>().data();
  const auto [found, is_new] = entries_.try_emplace(elements);
  Entry& entry = found->second;
  if (is_new) entry.weight = weight.detach();
  if (!entry.strips && ++entry.products >= paying_products)
    entry.strips.emplace(elements, weight.dim(0), weight.dim(1));
  return entry.strips ? &*entry.strips : nullptr;
}

}  // namespace qkv
