#pragma once

#include <map>
#include <mutex>

#include "core/execution.h"
#include "core/kernels/strips.h"
#include "core/tensor.h"

namespace qkv {

/// Copies of the float32 weights of `linear` (core/ops.h) in the order in which products of few
/// rows read them. With float32 elements, a model that reads token by token, as in generation, is
/// three times as fast in the cache, with the same bits and twice the memory for weights. With int8
/// elements every product reads a quarter of the bytes and is rounded as the weights are.
class PackedWeights {
 public:
  explicit PackedWeights(WeightFormat format) : format_(format) {}
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  /// Whether products of so many rows read packed weights.
  bool serves(Index rows) const {
    return format_ == WeightFormat::int8 || rows <= kernels::Strips::most_rows;
  }
  /// The copy of a weight [out, in], which is made when it is asked for first. Throws ValueError
  /// for a weight that int8 cannot hold.
  const kernels::Strips& of(const Tensor& weight);

  /// While alive, `linear` takes float32 weights from `packed` on this thread. Gradients are those
  /// of the weights that are not packed.
  class Use {
   public:
    explicit Use(PackedWeights& packed)
        : scope_(Execution::current().with(&Execution::packed, &packed)) {}

   private:
    ExecutionScope scope_;
  };

 private:
  struct Entry {
    Tensor weight;  ///< keeps the buffer, which is the key
    kernels::Strips strips;
  };
  WeightFormat format_;
  std::mutex mutex_;
  std::map<const float*, Entry> entries_;
};

}  // namespace qkv
