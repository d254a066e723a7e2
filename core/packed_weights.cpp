#include "core/packed_weights.h"

#include <map>
#include <mutex>

#include "core/kernels/strips.h"

namespace qkv {

struct PackedWeights::State {
  struct Entry {
    Tensor weight;  ///< keeps the buffer, which is the key
    kernels::Strips strips;
  };

  explicit State(WeightFormat kept) : format(kept) {}

  WeightFormat format;
  std::mutex mutex;
  std::map<const float*, Entry> entries;
};

PackedWeights::PackedWeights(WeightFormat format) : state_(std::make_unique<State>(format)) {}
PackedWeights::~PackedWeights() = default;

bool PackedWeights::serves(Index rows) const {
  return state_->format == WeightFormat::int8 || rows <= kernels::Strips::most_rows;
}

const kernels::Strips& PackedWeights::of(const Tensor& weight) {
  const std::lock_guard lock(state_->mutex);
  const float* key = weight.data<float>().data();
  const auto found = state_->entries.find(key);
  if (found != state_->entries.end()) return found->second.strips;
  kernels::Strips strips(state_->format, key, weight.dim(0), weight.dim(1));
  return state_->entries.emplace(key, State::Entry{weight.detach(), std::move(strips)})
      .first->second.strips;
}

}  // namespace qkv
