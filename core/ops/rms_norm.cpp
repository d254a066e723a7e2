#include "core/kernels/rows.h"
#include "core/ops.h"
#include "core/ops/make.h"

namespace qkv {
namespace {

constexpr Index per_number = 6;

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gain, double epsilon) {
  require_same_dtype("rms_norm", x, gain);
  const Index width = x.rank() ? x.dim(-1) : 0;
  require(width > 0 && gain.shape() == Shape{width},
          "[rms_norm] input {} needs a gain of its last size, got {}", x.shape(), gain.shape());
  const Index rows = x.size() / width;
  Tensor inverse_roots = Tensor::empty({rows}, x.dtype());
  Tensor normalised = Tensor::empty(x.shape(), x.dtype());
  const Tensor y = make(x.shape(), x.dtype(), [&]<class T>(T* to) {
    const T *from = numbers(x, to), *g = numbers(gain, to);
    T *hat = normalised.mutable_data<T>().data(), *inverse = inverse_roots.mutable_data<T>().data();
    parallel_for(cut(rows, width * per_number), [=](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        const Index first = row * width;
        const T squares = kernels::sum_row<T>(
            width, [=](auto at) { return at(from + first) * at(from + first); });
        inverse[row] = 1 / std::sqrt(squares / static_cast<T>(width) + static_cast<T>(epsilon));
        for (Index i = 0; i < width; ++i) {
          hat[first + i] = from[first + i] * inverse[row];
          to[first + i] = hat[first + i] * g[i];
        }
      }
    });
  });
  return record(
      "rms_norm", y, {x, gain},
      [=, gain = gain.detach()](const Tensor& dy, InputGradients& inputs) {
        // With g = gain dy: dx = (g - xhat mean(g xhat)) / root
        inputs.add(0, [&] {
          return make(dy.shape(), dy.dtype(), [&]<class T>(T* dx) {
            const T *d = numbers(dy, dx), *g = numbers(gain, dx), *hat = numbers(normalised, dx);
            const T* inverse = numbers(inverse_roots, dx);
            parallel_for(cut(rows, width * per_number), [=](Index begin, Index end) {
              for (Index row = begin; row < end; ++row) {
                const Index first = row * width;
                const T mean =
                    kernels::sum_row<T>(
                        width, [=](auto at) { return at(g) * at(d + first) * at(hat + first); }) /
                    static_cast<T>(width);
                for (Index i = 0; i < width; ++i)
                  dx[first + i] = inverse[row] * (g[i] * d[first + i] - hat[first + i] * mean);
              }
            });
          });
        });
        inputs.add(1, [&] { return sum_to(multiply(dy, normalised), {width}); });
      });
}

}  // namespace qkv
