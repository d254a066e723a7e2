#pragma once

#include "layers/options.h"
#include "tests/ops/case.h"

/// Helpers that the draws of all families share. Where an expression of xtensor would compute an
/// element more than once, as behind a broadcast, it is stored in an array first: the tape records
/// each computation.
namespace qkv::fuzz {

/// f of each element, or of elements of arrays that broadcast together.
template <class F, class... X>
Array map(F f, const X&... x) {
  return xt::make_lambda_xfunction(std::move(f), x...);
}

/// An axis of x, counted from the first.
inline std::size_t axis_in(const Array& x, int axis) {
  return static_cast<std::size_t>(axis) + (axis < 0 ? x.dimension() : 0);
}
/// x with two axes exchanged.
Array swapped(const Array& x, std::size_t first, std::size_t second);
/// x[..., begin:end:step, ...] along an axis
Array sliced(const Array& x, std::size_t axis, Index begin, Index end, Index step = 1);
/// y[..., begin:begin + n, ...] = x along an axis, of which x has n positions
void place(Array& y, std::size_t axis, Index begin, const Array& x);
Array concatenated(const Arrays& parts, std::size_t axis);
/// x with `axes` behind the others and joined to one.
Array with_joined(const Array& x, const std::vector<std::size_t>& axes);

/// The elements along the last axis at position `i` of all other axes.
inline Scalars row_of(const Array& x, std::size_t i) {
  return Scalars(x.data(), x.size()).subspan(i * x.shape().back(), x.shape().back());
}
inline Scalar zero(DType dtype) {
  return {Number{0, 0, dtype, false}};
}
/// Replaces the last size.
Sizes with_last(Sizes sizes, std::size_t size);

/// f of the elements along axes, which have a size of 1 in the result or, without `keep`, none.
template <class F>
Array reduce_axes(const Array& x, const std::vector<std::size_t>& axes, bool keep, F f) {
  const Array rows = with_joined(x, axes);
  Sizes sizes = x.shape();
  for (const std::size_t axis : axes) sizes[axis] = 1;
  Array y(with_last(rows.shape(), 1));
  for (std::size_t i = 0; i < y.size(); ++i) y.flat(i) = f(row_of(rows, i), dtype_of(x));
  y.reshape(keep ? sizes : Sizes(rows.shape().begin(), rows.shape().end() - 1));
  return y;
}

/// f(elements along an axis), which gives `count` of them, or as many as there were.
template <class F>
Array map_axis(const Array& x, std::size_t axis, F f, std::optional<std::size_t> count = {}) {
  const std::size_t last = x.dimension() - 1;
  const Array rows = swapped(x, axis, last);
  Array y(with_last(rows.shape(), count.value_or(rows.shape().back())));
  for (std::size_t i = 0; i * y.shape().back() < y.size(); ++i)
    std::ranges::copy(f(row_of(rows, i)), y.data() + i * y.shape().back());
  return swapped(y, axis, last);
}

/// x W^T + b
Array linear(const Array& x, const Array& weight, const Array* bias);
Scalar gelu(const Scalar& x);
Scalar silu(const Scalar& x);

/// The randomness of dropout, which PyTorch's side knows as well.
inline const Random dropout_random(7, Purpose::testing);
constexpr const char* dropout_random_code = "Random(7, Purpose::testing)";
/// Element `i` after dropout.
Scalar dropped(const Scalar& x, std::size_t i, double probability);

// Formulas of ops that layers consist of; those of the same name in core/ops.h describe them.
Scalar positive_part(const Scalar& x);
Array layer_norm(const Array& x, const Array& gain, const Array* bias, double epsilon);
Array rms_norm(const Array& x, const Array& gain, double epsilon);
Array attention(const Array& q, const Array& k, const Array& v, const AttentionMask& mask,
                const AttentionOptions& options);
Array rotary(const Array& x, std::size_t heads);
Array conv1d(const Array& x, const Array& weight, const Array* bias, const Conv1dOptions& options);
/// in: x, the weights and the biases, and perhaps an initial state.
Array recurrent(CellKind cell, const Arrays& in, const Indices& lengths, bool reverse);

}  // namespace qkv::fuzz
