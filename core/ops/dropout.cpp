#include "core/ops/dropout.h"

#include <algorithm>
#include <array>

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
    const DropoutMask<T> mask(probability, random);
    parallel_for(partition(x.size(), philox), [&, from](Index begin, Index end) {
      std::array<T, 256> some;
      for (Index i = begin; i < end; i += std::ssize(some)) {
        const Index count = std::min<Index>(std::ssize(some), end - i);
        mask.write(some.data(), i, count);
        for (Index j = 0; j < count; ++j)
          y[i + j] = from[i + j] * some[static_cast<std::size_t>(j)];
      }
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
