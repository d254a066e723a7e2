#include "core/kernels/rows.h"
#include "core/ops.h"
#include "core/ops/make.h"

namespace qkv {
namespace {

constexpr Index per_number = 8;

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon) {
  require_same_dtype("layer_norm", x, gain);
  if (bias) require_same_dtype("layer_norm", x, bias);
  const Index width = x.rank() ? x.dim(-1) : 0;
  require(width > 0 && gain.shape() == Shape{width} && (!bias || bias.shape() == gain.shape()),
          "[layer_norm] input {} needs gain and bias of its last size, got {} and {}", x.shape(),
          gain.shape(), bias.shape());
  const Index rows = x.size() / width;
  Tensor inverse_deviations = Tensor::empty({rows}, x.dtype());
  // The normalised rows serve backward better than x: x itself and the means need not be kept.
  Tensor normalised = Tensor::empty(x.shape(), x.dtype());
  const Tensor y = make(x.shape(), x.dtype(), [&]<class T>(T* to) {
    const T *from = numbers(x, to), *g = numbers(gain, to);
    const T* b = bias ? numbers(bias, to) : nullptr;
    T *hat = normalised.mutable_data<T>().data(),
      *inverse = inverse_deviations.mutable_data<T>().data();
    parallel_for(cut(rows, width * per_number), [=](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        const T* in = from + row * width;
        const T mean =
            kernels::sum_row<T>(width, [=](Index i) { return in[i]; }) / static_cast<T>(width);
        const T variance =
            kernels::sum_row<T>(width, [=](Index i) { return (in[i] - mean) * (in[i] - mean); }) /
            static_cast<T>(width);
        inverse[row] = 1 / std::sqrt(variance + static_cast<T>(epsilon));
        for (Index i = 0; i < width; ++i) {
          hat[row * width + i] = (in[i] - mean) * inverse[row];
          to[row * width + i] = hat[row * width + i] * g[i];
        }
        for (Index i = 0; b && i < width; ++i) to[row * width + i] += b[i];
      }
    });
  });
  return record(
      "layer_norm", y, {x, gain, bias},
      [=, gain = gain.detach()](const Tensor& dy, InputGradients& inputs) {
        // With g = gain dy: dx = (g - mean(g) - xhat mean(g xhat)) / deviation
        inputs.add(0, [&] {
          return make(dy.shape(), dy.dtype(), [&]<class T>(T* dx) {
            const T *d = numbers(dy, dx), *g = numbers(gain, dx), *hat = numbers(normalised, dx);
            const T* inverse = numbers(inverse_deviations, dx);
            parallel_for(cut(rows, width * per_number), [=](Index begin, Index end) {
              for (Index row = begin; row < end; ++row) {
                const Index first = row * width;
                const T mean_g =
                    kernels::sum_row<T>(width, [=](Index i) { return g[i] * d[first + i]; }) /
                    static_cast<T>(width);
                const T mean_g_hat =
                    kernels::sum_row<T>(
                        width, [=](Index i) { return g[i] * d[first + i] * hat[first + i]; }) /
                    static_cast<T>(width);
                for (Index i = 0; i < width; ++i)
                  dx[first + i] =
                      inverse[row] * (g[i] * d[first + i] - mean_g - hat[first + i] * mean_g_hat);
              }
            });
          });
        });
        inputs.add(1, [&] { return sum_to(multiply(dy, normalised), {width}); });
        inputs.add(2, [&] { return sum_to(dy, {width}); });
      });
}

}  // namespace qkv
