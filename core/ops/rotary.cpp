#include <cmath>

#include "core/autograd.h"
#include "core/ops.h"
#include "core/ops/checks.h"
#include "core/ops/create.h"
#include "core/parallel.h"

namespace qkv {
namespace {

using namespace detail;

/// Turns number i of each head with number i + width / 2, in the direction `sign`.
Tensor turned(const Tensor& x, Index heads, const Tensor& turns, int sign) {
  const Index time = x.dim(1), half = x.dim(2) / heads / 2, rows = x.dim(0) * time;
  return create(x.shape(), x.dtype(), [&]<class T>(T* y) {
    const T *from = elements(x, y), *turn = elements(turns, y);
    parallel_for(partition(rows, x.dim(2)), [=](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        const T *cosine = turn + row % time * 2 * half, *sine = cosine + half;
        for (Index head = 0; head < heads; ++head) {
          const T* a = from + (row * heads + head) * 2 * half;
          T* b = y + (row * heads + head) * 2 * half;
          for (Index i = 0; i < half; ++i) {
            const T s = static_cast<T>(sign) * sine[i];
            b[i] = a[i] * cosine[i] - a[i + half] * s;
            b[i + half] = a[i + half] * cosine[i] + a[i] * s;
          }
        }
      }
    });
  });
}

}  // namespace

Tensor rotary_cos_sin(Index time, Index head_width, Index first, DType dtype) {
  require<ValueError>(head_width % 2 == 0, "[rotary] the width of a head must be even, got {}",
                      head_width);
  const Index half = head_width / 2;
  return create({time, head_width}, dtype, [&]<class T>(T* turns) {
    for (Index t = 0; t < time; ++t, turns += head_width)
      for (Index i = 0; i < half; ++i) {
        const double exponent = static_cast<double>(i) / static_cast<double>(half);
        const double angle = static_cast<double>(first + t) / std::pow(10000.0, exponent);
        turns[i] = static_cast<T>(std::cos(angle));
        turns[i + half] = static_cast<T>(std::sin(angle));
      }
  });
}

Tensor rotary(const Tensor& x, Index heads, const Tensor& turns) {
  require_same_dtype("rotary", x, turns);
  require(x.rank() == 3 && heads >= 1 && x.dim(2) % (2 * heads) == 0 &&
              turns.shape() == Shape{x.dim(1), x.dim(2) / heads},
          "[rotary] x (B, T, D) needs turns (T, D / H), D / H even; got {}, {} and {} heads",
          x.shape(), turns.shape(), heads);
  return record("rotary", turned(x, heads, turns, 1), {x},
                [heads, turns = turns.detach()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, turned(dy, heads, turns, -1));
                });
}

}  // namespace qkv
