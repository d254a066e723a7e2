#pragma once

#include <memory>

#include "core/execution.h"
#include "core/tensor.h"
#include "core/weight_format.h"

namespace qkv {
namespace kernels {
class Strips;
}

/// Copies of the float32 weights of `linear` (core/ops.h) in the order in which products of few
/// rows read them. With float32 elements, a model that reads token by token, as in generation, is
/// three times as fast in the cache, with the same bits and twice the memory for weights. With int8
/// elements every product reads a quarter of the bytes and is rounded as the weights are.
class PackedWeights {
 public:
  explicit PackedWeights(WeightFormat format);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  /// Whether products of so many rows read packed weights.
  bool serves(Index rows) const;
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
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
