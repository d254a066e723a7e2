#include "core/packed_weights.h"

namespace qkv {

const kernels::Strips& PackedWeights::of(const Tensor& weight) {
  const std::lock_guard lock(mutex_);
  const float* key = weight.data<float>().data();
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second.strips;
  return entries_
      .emplace(key,
               Entry{weight.detach(), kernels::Strips(format_, key, weight.dim(0), weight.dim(1))})
      .first->second.strips;
}

}  // namespace qkv
