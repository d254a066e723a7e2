#include "core/ops.h"
#include "core/ops/norm.h"

namespace qkv {
namespace {

constexpr Index per_number = 6;

struct RmsNormBackward : Normalised {
  /// With g = gain dy: dx = (g - xhat mean(g xhat)) / root
  void operator()(const Tensor& dy, InputGradients& inputs) const {
    inputs.add(0, [&] {
      return make(dy.shape(), dy.dtype(), [&]<class T>(T* dx) {
        const T *d = numbers(dy, dx), *g = numbers(gain, dx), *hat = numbers(rows, dx);
        const T* inverse = numbers(inverses, dx);
        parallel_for(
            cut(count(), width() * per_number), [=, width = width()](Index begin, Index end) {
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
    inputs.add(1, [&] { return sum_to(multiply(dy, rows), {width()}); });
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gain, double epsilon) {
  require_same_dtype("rms_norm", x, gain);
  require_epsilon("rms_norm", epsilon);
  const Index width = x.rank() ? x.dim(-1) : 0;
  require(width > 0 && gain.shape() == Shape{width},
          "[rms_norm] input {} needs a gain of its last size, got {}", x.shape(), gain.shape());
  const Index rows = x.size() / width;
  RmsNormBackward kept{
      {Tensor::empty(x.shape(), x.dtype()), Tensor::empty({rows}, x.dtype()), gain.detach(), {}}};
  const Tensor y = make(x.shape(), x.dtype(), [&]<class T>(T* to) {
    const T *from = numbers(x, to), *g = numbers(gain, to);
    T *hat = kept.rows.mutable_data<T>().data(), *inverse = kept.inverses.mutable_data<T>().data();
    parallel_for(cut(rows, width * per_number), [=](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        const Index first = row * width;
        const T squares = kernels::sum_row<T>(
            width, [=](auto at) { return at(from + first) * at(from + first); });
        const T factor = 1 / std::sqrt(squares / static_cast<T>(width) + static_cast<T>(epsilon));
        inverse[row] = factor;
        kernels::map_row(width, hat + first, [=](auto at) { return at(from + first) * factor; });
        scale_row<T>(width, hat + first, g, nullptr, to + first);
      }
    });
  });
  return record("rms_norm", y, {x, gain}, std::move(kept));
}

}  // namespace qkv
