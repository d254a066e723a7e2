#include <cmath>

#include "core/autograd.h"
#include "core/ops.h"
#include "core/ops/checks.h"
#include "core/ops/create.h"
#include "core/parallel.h"

namespace qkv {
namespace {

using namespace detail;

/// Rotates each pair (x_i, x_{i + d/2}) of a head by its angle, in the direction `sign`.
Tensor rotated(const Tensor& x, Index heads, const Tensor& cos_sin, int sign) {
  const Index time = x.dim(1), half = x.dim(2) / heads / 2, rows = x.dim(0) * time;
  return create(x.shape(), x.dtype(), [&]<class T>(T* y) {
    const T *from = elements(x, y), *table = elements(cos_sin, y);
    parallel_for(partition(rows, x.dim(2)), [=](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        const T *cosine = table + row % time * 2 * half, *sine = cosine + half;
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
  return create({time, head_width}, dtype, [&]<class T>(T* cos_sin) {
    for (Index t = 0; t < time; ++t, cos_sin += head_width)
      for (Index i = 0; i < half; ++i) {
        const double exponent = static_cast<double>(i) / static_cast<double>(half);
        const double angle = static_cast<double>(first + t) / std::pow(10000.0, exponent);
        cos_sin[i] = static_cast<T>(std::cos(angle));
        cos_sin[i + half] = static_cast<T>(std::sin(angle));
      }
  });
}

Tensor rotary(const Tensor& x, Index heads, const Tensor& cos_sin) {
  require_same_dtype("rotary", x, cos_sin);
  require(
      x.rank() == 3 && heads >= 1 && x.dim(2) % (2 * heads) == 0 &&
          cos_sin.shape() == Shape{x.dim(1), x.dim(2) / heads},
      "[rotary] x (B, T, D) needs a cos/sin table (T, D / H), D / H even; got {}, {} and {} heads",
      x.shape(), cos_sin.shape(), heads);
  return record("rotary", rotated(x, heads, cos_sin, 1), {x},
                [heads, cos_sin = cos_sin.detach()](const Tensor& dy, InputGradients& inputs) {
                  inputs.add(0, rotated(dy, heads, cos_sin, -1));
                });
}

}  // namespace qkv
