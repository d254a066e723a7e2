#include "core/ops/checks.h"

#include <algorithm>

namespace qkv::detail {

void require_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  require<TypeError>(a.dtype() == b.dtype(), "[{}] dtypes differ: {} and {}; convert one with to()",
                     op, to_string(a.dtype()), to_string(b.dtype()));
}

void require_lengths(std::string_view op, const Tensor& x, const Indices& lengths) {
  require(x.rank() == 3 && lengths.shape() == Shape{x.dim(0)},
          "[{}] needs x (B, T, D) and lengths (B,), got {} and {}", op, x.shape(), lengths.shape());
  for (const auto length : lengths.data())
    require<IndexError>(length >= 0 && length <= x.dim(1), "[{}] length {} is outside [0, {}]", op,
                        length, x.dim(1));
}

void require_targets(std::string_view op, const Tensor& logits, const Indices& targets) {
  const Index classes = logits.rank() ? logits.dim(-1) : 0;
  require(classes > 0 && logits.rank() == targets.shape().rank() + 1 &&
              std::ranges::equal(logits.shape().sizes().first(targets.shape().sizes().size()),
                                 targets.shape().sizes()),
          "[{}] logits {} need one target a row, got targets {}", op, logits.shape(),
          targets.shape());
  for (const auto target : targets.data())
    require<IndexError>(target < classes, "[{}] target {} is not below the number of classes {}",
                        op, target, classes);
}

}  // namespace qkv::detail
