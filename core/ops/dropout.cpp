#include "core/ops/dropout.h"

#include "core/autograd.h"
#include "core/ops.h"
#include "core/ops/create.h"
#include "core/parallel.h"

namespace qkv {
namespace {

using namespace detail;

Tensor with_dropout(const Tensor& x, double probability, const Random& random) {
  constexpr Index philox = 8;
  return create(x.shape(), x.dtype(), [&]<class T>(T* y) {
    const T* from = elements(x, y);
    parallel_for(partition(x.size(), philox), [&, from](Index begin, Index end) {
      apply_dropout(from + begin, y + begin, begin, end - begin, random, probability);
    });
  });
}

}  // namespace

Tensor dropout(const Tensor& x, double probability, const Random& random) {
  require<ValueError>(probability >= 0 && probability < 1,
                      "[dropout] probability must be in [0, 1), got {}", probability);
  if (probability == 0) return x;
  return record("dropout", with_dropout(x, probability, random), {x},
                [=](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, with_dropout(dy, probability, random));
                });
}

}  // namespace qkv
