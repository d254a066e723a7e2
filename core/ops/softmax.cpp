#include <array>
#include <limits>
#include <numeric>

#include "core/kernels/rows.h"
#include "core/ops.h"
#include "core/ops/checks.h"
#include "core/ops/make.h"

namespace qkv {
namespace {

/// Estimated operations of exp and the passes around it.
constexpr Index per_number = 20;

/// x with two axes exchanged.
Tensor swapped(const Tensor& x, int a, int b) {
  std::array<int, Shape::max_rank> axes{};
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<std::size_t>(a)], axes[static_cast<std::size_t>(b)]);
  return permute(x, std::span(axes).first(static_cast<std::size_t>(x.rank())));
}

}  // namespace

Tensor softmax(const Tensor& x, int axis) {
  require(x.rank() >= 1, "[softmax] needs at least one axis, got a scalar");
  const int last = x.rank() - 1, normal = normal_axis("softmax", axis, x.shape());
  if (normal != last) return swapped(softmax(swapped(x, normal, last)), normal, last);
  const Index width = x.dim(-1), rows = width ? x.size() / width : 0;
  const Tensor y = make(x.shape(), x.dtype(), [&]<class T>(T* to) {
    const T* from = numbers(x, to);
    parallel_for(cut(rows, width * per_number), [=](Index begin, Index end) {
      for (Index row = begin; row < end; ++row)
        kernels::softmax_row(from + row * width, to + row * width, width, width);
    });
  });
  return record("softmax", y, {x}, [=](const Tensor& dy, InputGradients& inputs) {
    inputs.add(0, make(y.shape(), y.dtype(), [&]<class T>(T* dx) {
                 const T *from_y = numbers(y, dx), *from_dy = numbers(dy, dx);
                 parallel_for(cut(rows, width * per_number), [=](Index begin, Index end) {
                   for (Index row = begin * width; row < end * width; row += width)
                     kernels::softmax_row_backward(from_y + row, from_dy + row, dx + row, width);
                 });
               }));
  });
}

Tensor cross_entropy(const Tensor& logits, const Indices& targets) {
  require_targets("cross_entropy", logits, targets);
  const Index classes = logits.dim(-1), rows = targets.size();
  const auto counted = std::ranges::count_if(targets.data(), [](auto t) { return t >= 0; });
  const double share = counted ? 1.0 / static_cast<double>(counted) : 0.0;
  const auto target_of = [targets](Index row) {
    return targets.data()[static_cast<std::size_t>(row)];
  };

  Tensor losses = Tensor::empty({rows}, DType::float64);
  const Tensor probabilities = make(logits.shape(), logits.dtype(), [&]<class T>(T* p) {
    const T* x = numbers(logits, p);
    double* loss = losses.mutable_data<double>().data();
    parallel_for(cut(rows, classes * per_number), [=](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        const Index target = target_of(row);
        const T* logit = x + row * classes;
        T* probability = p + row * classes;
        const auto normaliser = kernels::softmax_row(logit, probability, classes, classes);
        if (normaliser.sum == 0)  // all logits are -inf
          std::fill_n(probability, classes, std::numeric_limits<T>::quiet_NaN());
        loss[row] = target < 0 ? 0.0 : normaliser.negative_log(logit[target]);
      }
    });
  });
  const Tensor loss = affine(sum(losses), share, 0).to(logits.dtype());
  return record("cross_entropy", loss, {logits}, [=](const Tensor& dy, InputGradients& inputs) {
    // d loss / d logits = (softmax - onehot(target)) / rows that count
    inputs.add(0, make(probabilities.shape(), probabilities.dtype(), [&]<class T>(T* dx) {
                 const T* p = numbers(probabilities, dx);
                 const T factor = static_cast<T>(dy.item() * share);
                 parallel_for(cut(rows, classes), [=](Index begin, Index end) {
                   for (Index row = begin; row < end; ++row) {
                     const Index target = target_of(row), first = row * classes;
                     if (target < 0) {
                       std::fill_n(dx + first, classes, T{0});
                       continue;
                     }
                     for (Index i = first; i < first + classes; ++i) dx[i] = factor * p[i];
                     dx[first + target] -= factor;
                   }
                 });
               }));
  });
}

}  // namespace qkv
