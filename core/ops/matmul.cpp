#include "core/ops/matmul.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "core/autograd.h"
#include "core/kernels/gemm.h"
#include "core/kernels/strips.h"
#include "core/ops.h"
#include "core/ops/axes.h"
#include "core/ops/broadcast.h"
#include "core/ops/checks.h"
#include "core/ops/create.h"
#include "core/packed_weights.h"
#include "core/parallel.h"

namespace qkv {
namespace {

using namespace detail;
using kernels::Matrix;

/// Rows of [..., K] seen as [rows, K].
Index rows_of(const Tensor& x) {
  return axis_view(x.shape(), x.rank() - 1).outer;
}

/// The leading axes of `x`, then `rows` and `columns`.
Shape with_matrix(const Shape& shape, Index rows, Index columns) {
  std::array<Index, Shape::max_rank> sizes{};
  std::copy(shape.begin(), shape.end(), sizes.begin());
  const auto rank = static_cast<std::size_t>(shape.rank());
  sizes[rank - 2] = rows;
  sizes[rank - 1] = columns;
  return Shape(std::span<const Index>(sizes.data(), rank));
}

bool one_matrix(const Tensor& x) {
  return x.rank() == 2;
}

}  // namespace

Tensor detail::product(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                       Tensor sum) {
  const Index m = a.dim(transpose_a ? -1 : -2), k = a.dim(transpose_a ? -2 : -1);
  const Index n = b.dim(transpose_b ? -2 : -1);
  const Shape shape = with_matrix(one_matrix(a) ? b.shape() : a.shape(), m, n);
  const bool adds = static_cast<bool>(sum);
  Tensor result = adds ? copy_if_shared(std::move(sum)) : Tensor::empty(shape, a.dtype());
  dispatch(a.dtype(), [&]<class T>() {
    const T beta = adds ? T{1} : T{0};
    T* y = result.mutable_data<T>().data();
    const Index batch = shape.size() / std::max<Index>(m * n, 1);
    const Index step_a = one_matrix(a) ? 0 : m * k, step_b = one_matrix(b) ? 0 : k * n;
    const T *from_a = elements(a, y), *from_b = elements(b, y);
    const Index stride_a = a.dim(-1), stride_b = b.dim(-1);
    const auto multiply = [=](Index i, auto&& gemm) {
      gemm(m, n, k, T{1}, Matrix<const T>{from_a + i * step_a, stride_a, transpose_a},
           Matrix<const T>{from_b + i * step_b, stride_b, transpose_b}, beta,
           Matrix<T>{y + i * m * n, n});
    };
    if (batch == 1) return multiply(0, kernels::parallel_gemm<T>);
    parallel_for(partition(batch, m * n * k / 8), [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) multiply(i, kernels::gemm<T>);
    });
  });
  return result;
}

namespace {

Shape leading_axes(const Tensor& x) {
  return Shape(x.shape().sizes().first(static_cast<std::size_t>(x.rank() - 2)));
}

/// x's matrices after the axes `leading`.
Shape with_leading_axes(const Shape& leading, const Tensor& x) {
  std::vector<Index> sizes(leading.begin(), leading.end());
  sizes.insert(sizes.end(), {x.dim(-2), x.dim(-1)});
  return Shape(sizes);
}

Shape broadcast_leading_axes(const Tensor& a, const Tensor& b) {
  try {
    return broadcast("matmul", leading_axes(a), leading_axes(b));
  } catch (const ShapeError&) {
    throw ShapeError(
        fmt::format("[matmul] leading axes of {} and {} do not broadcast", a.shape(), b.shape()));
  }
}

/// Sums over the batch when the operand was one matrix.
Tensor to_operand(const Tensor& gradient, const Shape& shape) {
  return gradient.shape() == shape ? gradient : sum_to(gradient, shape);
}

/// `matmul` where one operand or both are vectors.
Tensor vector_product(const Tensor& a, const Tensor& b, Transpose transpose) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  const Tensor y = matmul(row ? reshape(a, Shape{1, a.size()}) : a,
                          column ? reshape(b, Shape{b.size(), 1}) : b, transpose);
  std::vector<Index> sizes(y.shape().begin(), y.shape().end());
  if (column) sizes.pop_back();
  if (row) sizes.erase(sizes.end() - (column ? 1 : 2));
  return reshape(y, Shape(sizes));
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, Transpose transpose) {
  require_same_dtype("matmul", a, b);
  const bool ta = transpose == Transpose::first, tb = transpose == Transpose::second;
  require(a.rank() >= 1 && b.rank() >= 1,
          "[matmul] needs matrices or vectors, got shapes {} and {}", a.shape(), b.shape());
  require(!(ta && a.rank() == 1) && !(tb && b.rank() == 1),
          "[matmul] a vector cannot be transposed: shapes {} and {}", a.shape(), b.shape());
  const Index inner_a = a.dim(ta ? -2 : -1), inner_b = b.dim(tb || b.rank() == 1 ? -1 : -2);
  require(inner_a == inner_b, "[matmul] inner sizes differ: lhs {} has {}, rhs {} has {}",
          a.shape(), inner_a, b.shape(), inner_b);
  if (a.rank() == 1 || b.rank() == 1) return vector_product(a, b, transpose);
  if (!one_matrix(a) && !one_matrix(b) && leading_axes(a) != leading_axes(b)) {
    const Shape leading = broadcast_leading_axes(a, b);
    return matmul(expand(a, with_leading_axes(leading, a)),
                  expand(b, with_leading_axes(leading, b)), transpose);
  }
  return record("matmul", product(a, ta, b, tb), {a, b},
                [=, a = a.detach(), b = b.detach()](const Tensor& dy, InputGradients& inputs) {
                  // y = a b: da = dy b^T, db = a^T dy; with a transposed operand the result is
                  // transposed.
                  inputs.add(0, [&] {
                    return to_operand(ta ? product(b, false, dy, true) : product(dy, false, b, !tb),
                                      a.shape());
                  });
                  inputs.add(1, [&] {
                    return to_operand(tb ? product(dy, true, a, false) : product(a, !ta, dy, false),
                                      b.shape());
                  });
                });
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  require_same_dtype("linear", x, weight);
  require(x.rank() >= 1 && weight.rank() == 2 && x.dim(-1) == weight.dim(1),
          "[linear] input {} does not fit weight {}: the input's last size must equal the weight's "
          "second",
          x.shape(), weight.shape());
  if (bias) require_same_dtype("linear", x, bias);
  require(!bias || bias.shape() == Shape{weight.dim(0)}, "[linear] bias {} does not fit weight {}",
          bias.shape(), weight.shape());
  const Index rows = rows_of(x), in = weight.dim(1), out = weight.dim(0);
  std::vector<Index> sizes(x.shape().begin(), x.shape().end());
  sizes.back() = out;
  const Tensor y = create(Shape(sizes), x.dtype(), [&]<class T>(T* to) {
    if (bias) {
      const T* b = elements(bias, to);
      parallel_for(partition(rows, out), [=](Index begin, Index end) {
        for (Index row = begin; row < end; ++row) std::copy_n(b, out, to + row * out);
      });
    }
    if constexpr (std::is_same_v<T, float>)
      if (PackedWeights* packed = Execution::current().packed; packed && packed->serves(rows))
        return packed->of(weight).multiply(rows, elements(x, to), static_cast<bool>(bias), to);
    kernels::parallel_gemm(rows, out, in, T{1}, {elements(x, to), in},
                           {elements(weight, to), in, true}, bias ? T{1} : T{0},
                           Matrix<T>{to, out});
  });
  return record(
      "linear", y, {x, weight, bias},
      [=, kept = SavedInput(x), w = weight.detach()](const Tensor& dy, InputGradients& inputs) {
        const Tensor x = kept.value();
        const Tensor flat_dy = dy.with_shape({rows, out}), flat_x = x.with_shape({rows, in});
        inputs.add(0, [&](Tensor sum) {
          return product(flat_dy, false, w, false, std::move(sum)).with_shape(x.shape());
        });
        inputs.add(
            1, [&](Tensor sum) { return product(flat_dy, true, flat_x, false, std::move(sum)); });
        inputs.add(2, [&] { return sum_to(flat_dy, {out}); });
      });
}

}  // namespace qkv
