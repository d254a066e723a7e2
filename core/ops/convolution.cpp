#include <algorithm>

#include "core/autograd.h"
#include "core/ops.h"
#include "core/ops/checks.h"
#include "core/ops/create.h"
#include "core/parallel.h"

namespace qkv {
namespace {

using namespace detail;

/// The elements of a sequence under a convolution's kernel at each of its positions (im2col).
struct Windows {
  Index batch, time, channels, kernel, positions;
  Conv1dOptions options;

  Index columns() const { return channels * kernel; }
  /// f(offset in x, offset in the windows) for each element of sequence b that is in a window.
  template <class F>
  void for_each(Index b, F f) const {
    for (Index position = 0; position < positions; ++position)
      for (Index k = 0; k < kernel; ++k) {
        const Index t = position * options.stride + k * options.dilation - options.padding;
        if (t < 0 || t >= time) continue;
        const Index from = (b * time + t) * channels,
                    to = (b * positions + position) * columns() + k;
        for (Index c = 0; c < channels; ++c) f(from + c, to + c * kernel);
      }
  }
  /// f(b) for each sequence, in parallel.
  template <class F>
  void for_each_sequence(F f) const {
    parallel_for(partition(batch, 2 * positions * columns()), [=](Index begin, Index end) {
      for (Index b = begin; b < end; ++b) f(b);
    });
  }
};

/// x [B, T, in] -> [B, T', in K]: the window at each position of the kernel, zeros for the padding.
Tensor windows_of(const Tensor& x, const Windows& windows) {
  const Index size = windows.positions * windows.columns();
  return create({windows.batch, windows.positions, windows.columns()}, x.dtype(),
                [&]<class T>(T* to) {
                  const T* from = elements(x, to);
                  windows.for_each_sequence([=](Index b) {
                    std::fill_n(to + b * size, size, T{0});
                    windows.for_each(b, [=](Index i, Index j) { to[j] = from[i]; });
                  });
                });
}

/// Backward of `windows_of`, which has a kernel's width times as many elements as x: they are
/// computed again instead of saved.
struct WindowsBackward {
  Tensor x;
  Windows windows;

  void operator()(const Tensor& dy, InputGradients& inputs) const {
    inputs.add(0, create(x.shape(), dy.dtype(), [&]<class T>(T* dx) {
                 const T* gradient = elements(dy, dx);
                 const Index size = windows.time * windows.channels;
                 windows.for_each_sequence([=, windows = windows](Index b) {
                   std::fill_n(dx + b * size, size, T{0});
                   windows.for_each(b, [=](Index i, Index j) { dx[i] += gradient[j]; });
                 });
               }));
  }
  Tensor recompute() const { return windows_of(x, windows); }
};

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv1dOptions& options) {
  require_same_dtype("conv1d", x, weight);
  require(x.rank() == 3 && weight.rank() == 3 && x.dim(2) == weight.dim(1) && weight.dim(2) > 0,
          "[conv1d] needs x (B, T, in) and weight (out, in, K), got {} and {}", x.shape(),
          weight.shape());
  if (bias) require_same_dtype("conv1d", x, bias);
  require(!bias || bias.shape() == Shape{weight.dim(0)}, "[conv1d] bias {} does not fit weight {}",
          bias.shape(), weight.shape());
  require<ValueError>(
      options.stride >= 1 && options.dilation >= 1 && options.padding >= 0,
      "[conv1d] stride {} and dilation {} must be at least 1, padding {} at least 0",
      options.stride, options.dilation, options.padding);
  constexpr Index most = Index{1} << 31;  // the sums below do not overflow
  require<ValueError>(std::max({options.dilation, options.padding, weight.dim(2)}) <= most,
                      "[conv1d] dilation {}, padding {} and kernel width {} must be at most {}",
                      options.dilation, options.padding, weight.dim(2), most);
  const Index kernel = weight.dim(2), span = options.dilation * (kernel - 1) + 1;
  const Index room = x.dim(1) + 2 * options.padding - span;
  require(room >= 0,
          "[conv1d] sequences of x {} with padding {} are shorter than the kernel of weight {} "
          "with dilation {}; pad them to {}",
          x.shape(), options.padding, weight.shape(), options.dilation, span);
  const Windows windows{x.dim(0), x.dim(1), x.dim(2), kernel, room / options.stride + 1, options};
  const Tensor unfolded =
      record("conv1d", windows_of(x, windows), {x}, WindowsBackward{x.detach(), windows});
  return linear(unfolded, reshape(weight, Shape{weight.dim(0), windows.columns()}), bias);
}

}  // namespace qkv
