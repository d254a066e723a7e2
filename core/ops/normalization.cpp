#include <cmath>

#include "core/autograd.h"
#include "core/kernels/rows.h"
#include "core/kernels/scratch.h"
#include "core/ops.h"
#include "core/ops/broadcast.h"
#include "core/ops/checks.h"
#include "core/ops/create.h"
#include "core/parallel.h"

namespace qkv {
namespace {

using namespace detail;

/// Estimated operations per element.
constexpr Index layer_norm_cost = 8, rms_norm_cost = 6;

void require_epsilon(std::string_view op, double epsilon) {
  require<ValueError>(epsilon >= 0 && std::isfinite(epsilon),
                      "[{}] epsilon must be finite and not negative, got {}", op, epsilon);
}

/// y = gain xhat + bias, where the bias may be null. Not inlined: the compiler fuses
/// multiplications with additions as it sees fit, and a recomputed row must have the bits of the
/// first.
template <class T>
[[gnu::noinline]] void scale_row(Index width, const T* normalised, const T* gain, const T* bias,
                                 T* y) {
  if (bias)
    kernels::map_row(width, y, [=](auto at) { return at(normalised) * at(gain) + at(bias); });
  else
    kernels::map_row(width, y, [=](auto at) { return at(normalised) * at(gain); });
}

/// Saved inputs of a normalisation: the normalised rows instead of x, from which the value
/// can be recomputed.
struct Normalised {
  Tensor rows;      ///< xhat, of x's shape
  Tensor inverses;  ///< reciprocal standard deviation or root mean square of each row
  Tensor gain, bias;

  Index width() const { return gain.size(); }
  Index count() const { return inverses.size(); }

  Tensor recompute() const {
    return create(rows.shape(), rows.dtype(), [&]<class T>(T* y) {
      const T *hat = elements(rows, y), *g = elements(gain, y),
              *b = bias ? elements(bias, y) : nullptr;
      parallel_for(partition(count(), 2 * width()), [=, width = width()](Index begin, Index end) {
        for (Index row = begin; row < end; ++row)
          scale_row(width, hat + row * width, g, b, y + row * width);
      });
    });
  }
};

/// With g = gain dy: dx = (g - mean(g) - xhat mean(g xhat)) / std. `sums` receives the sums over
/// rows of dy xhat and of dy, the gradients of gain and bias. dx, which may be `normalised`, is
/// written or, with `adds`, added to.
template <class T>
void backward(Index rows, Index width, const T* dy, const T* gain, const T* normalised,
              const T* inverse_stds, bool adds, T* dx, T* sums) {
  const Chunks chunks = partition(rows, width * layer_norm_cost);
  const kernels::Scratch<T> partial_sums(chunks.count * 2 * width);
  parallel_for(chunks.count, [&](Index chunk) {
    T *gain_sum = partial_sums.data() + chunk * 2 * width, *bias_sum = gain_sum + width;
    std::fill_n(gain_sum, 2 * width, T{0});
    for (Index row = chunks.begin(chunk); row < chunks.end(chunk); ++row) {
      const T *d = dy + row * width, *hat = normalised + row * width;
      T* to = dx + row * width;
      const T inverse_width = 1 / static_cast<T>(width);
      const T mean =
          inverse_width * kernels::sum_row<T>(width, [=](auto at) { return at(gain) * at(d); });
      const T mean_hat = inverse_width * kernels::sum_row<T>(width, [=](auto at) {
                           return at(gain) * at(d) * at(hat);
                         });
      const T inverse = inverse_stds[row];
      kernels::for_row<T>(width, [=](auto at, auto put) {
        const auto slope = at(d), normal = at(hat);
        const auto change = inverse * (at(gain) * slope - mean - normal * mean_hat);
        put(to, adds ? at(to) + change : change);
        put(gain_sum, at(gain_sum) + slope * normal);
        put(bias_sum, at(bias_sum) + slope);
      });
    }
  });
  std::fill_n(sums, 2 * width, T{0});
  for (Index chunk = 0; chunk < chunks.count; ++chunk)
    for (Index i = 0; i < 2 * width; ++i) sums[i] += partial_sums.data()[chunk * 2 * width + i];
}

struct LayerNormBackward : Normalised {
  void operator()(const Tensor& dy, InputGradients& inputs) const {
    Tensor sums = Tensor::empty({2, width()}, dy.dtype());
    const auto pull = [&](Tensor sum) {
      const bool adds = static_cast<bool>(sum);
      Tensor dx = adds ? copy_if_shared(std::move(sum)) : inputs.donated_or_new(rows);
      dispatch(dy.dtype(), [&]<class T>() {
        const auto data = [](const Tensor& t) { return t.data<T>().data(); };
        backward<T>(count(), width(), data(dy), data(gain), data(rows), data(inverses), adds,
                    dx.shared_mutable_data<T>().data(), sums.mutable_data<T>().data());
      });
      return dx;
    };
    if (inputs.needs(0))
      inputs.add(0, pull);
    else
      pull({});
    inputs.add(1, [&] { return reshape(slice(sums, 0, 0, 1), {width()}); });
    inputs.add(2, [&] { return reshape(slice(sums, 0, 1, 2), {width()}); });
  }
};

struct RmsNormBackward : Normalised {
  /// With g = gain dy: dx = (g - xhat mean(g xhat)) / root
  void operator()(const Tensor& dy, InputGradients& inputs) const {
    inputs.add(0, [&] {
      return create(dy.shape(), dy.dtype(), [&]<class T>(T* dx) {
        const T *d = elements(dy, dx), *g = elements(gain, dx), *hat = elements(rows, dx);
        const T* inverse = elements(inverses, dx);
        parallel_for(partition(count(), width() * rms_norm_cost), [=, width = width()](Index begin,
                                                                                       Index end) {
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

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon) {
  require_same_dtype("layer_norm", x, gain);
  if (bias) require_same_dtype("layer_norm", x, bias);
  require_epsilon("layer_norm", epsilon);
  const Index width = x.rank() ? x.dim(-1) : 0;
  require(width > 0 && gain.shape() == Shape{width} && (!bias || bias.shape() == gain.shape()),
          "[layer_norm] input {} needs gain and bias of its last size, got {} and {}", x.shape(),
          gain.shape(), bias.shape());
  const Index rows = x.size() / width;
  LayerNormBackward saved{{Tensor::empty(x.shape(), x.dtype()), Tensor::empty({rows}, x.dtype()),
                           gain.detach(), bias.detach()}};
  const Tensor y = create(x.shape(), x.dtype(), [&]<class T>(T* to) {
    const T *from = elements(x, to), *g = elements(gain, to);
    const T* b = bias ? elements(bias, to) : nullptr;
    T *hat = saved.rows.mutable_data<T>().data(),
      *inverse = saved.inverses.mutable_data<T>().data();
    parallel_for(partition(rows, width * layer_norm_cost), [=](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        const T* in = from + row * width;
        const T mean =
            kernels::sum_row<T>(width, [=](auto at) { return at(in); }) / static_cast<T>(width);
        const T variance =
            kernels::sum_row<T>(width, [=](auto at) { return (at(in) - mean) * (at(in) - mean); }) /
            static_cast<T>(width);
        const T factor = 1 / std::sqrt(variance + static_cast<T>(epsilon));
        inverse[row] = factor;
        T* normal = hat + row * width;
        kernels::map_row(width, normal, [=](auto at) { return (at(in) - mean) * factor; });
        scale_row(width, normal, g, b, to + row * width);
      }
    });
  });
  return record("layer_norm", y, {x, gain, bias}, std::move(saved));
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double epsilon) {
  require_same_dtype("rms_norm", x, gain);
  require_epsilon("rms_norm", epsilon);
  const Index width = x.rank() ? x.dim(-1) : 0;
  require(width > 0 && gain.shape() == Shape{width},
          "[rms_norm] input {} needs a gain of its last size, got {}", x.shape(), gain.shape());
  const Index rows = x.size() / width;
  RmsNormBackward saved{
      {Tensor::empty(x.shape(), x.dtype()), Tensor::empty({rows}, x.dtype()), gain.detach(), {}}};
  const Tensor y = create(x.shape(), x.dtype(), [&]<class T>(T* to) {
    const T *from = elements(x, to), *g = elements(gain, to);
    T *hat = saved.rows.mutable_data<T>().data(),
      *inverse = saved.inverses.mutable_data<T>().data();
    parallel_for(partition(rows, width * rms_norm_cost), [=](Index begin, Index end) {
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
  return record("rms_norm", y, {x, gain}, std::move(saved));
}

}  // namespace qkv
