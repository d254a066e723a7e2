#pragma once

#include <array>

#include "layers/options.h"
#include "tests/ops/case.h"

/// What the draws of all families share: the oracle's loops over arrays.
namespace qkv::fuzz {

/// The position in an array of `shape` that position `i` of `to`, to which it broadcasts, stems
/// from.
Index broadcast_position(const Shape& shape, const Shape& to, Index i);
Array broadcast_to(const Array& x, const Shape& shape);

template <class F>
Array map(const Array& x, F f) {
  Array y{x.shape, {}};
  y.scalars.reserve(x.scalars.size());
  for (const Scalar& s : x.scalars) y.scalars.push_back(f(s));
  return y;
}

template <class F>
Array map(const Array& a, const Array& b, F f) {
  const Shape shape = broadcast("fuzz", a.shape, b.shape);
  Array y{shape, {}};
  for (Index i = 0; i < shape.size(); ++i)
    y.scalars.push_back(
        f(a[broadcast_position(a.shape, shape, i)], b[broadcast_position(b.shape, shape, i)]));
  return y;
}

/// The type under test: of an array's first scalar; an empty array has none to get wrong.
inline DType dtype_in(const Arrays& arrays) {
  for (const Array& x : arrays)
    if (!x.scalars.empty()) return x.scalars[0].dtype();
  return DType::float32;
}

/// Elements that a reduction joins, for each element of its result.
std::vector<std::vector<Index>> columns(const Shape& shape,
                                        const std::array<bool, Shape::max_rank>& reduced);
Shape reduced_shape(const Shape& shape, const std::array<bool, Shape::max_rank>& reduced,
                    bool keep);

std::vector<Scalar> at(const Array& x, std::span<const Index> positions);
inline std::span<const Scalar> row(const Array& x, Index i, Index width) {
  return std::span(x.scalars).subspan(static_cast<std::size_t>(i * width),
                                      static_cast<std::size_t>(width));
}
inline Scalar zero(DType dtype) {
  return {Number{0, 0, dtype, false}};
}

/// f(row) for each row along the last axis.
template <class F>
Array map_rows(const Array& x, F f) {
  const Index width = x.shape.dim(-1), rows = width ? x.size() / width : 0;
  Array y{x.shape, {}};
  for (Index i = 0; i < rows; ++i)
    for (const Scalar& s : f(row(x, i, width))) y.scalars.push_back(s);
  return y;
}

/// Replaces the last size.
Shape with_last(const Shape& shape, Index size);
/// x W^T + b
Array linear(const Array& x, const Array& weight, const Array* bias);
Scalar gelu(const Scalar& x);

/// The randomness of dropout, which PyTorch's side knows as well.
inline const Random dropout_random(7, Purpose::testing);
constexpr const char* dropout_random_code = "Random(7, Purpose::testing)";
/// What dropout makes of element `i`.
Scalar dropped(const Scalar& x, Index i, double probability);

// Formulas of ops that layers consist of; those of the same name in core/ops.h describe them.
Scalar positive_part(const Scalar& x);
Array layer_norm(const Array& x, const Array& gain, const Array* bias, double epsilon);
Array attention(const Array& q, const Array& k, const Array& v, const AttentionMask& mask,
                const AttentionOptions& options);
Array rotary(const Array& x, Index heads);
Array conv1d(const Array& x, const Array& weight, const Array* bias, const Conv1dOptions& options);
/// in: x, the weights and the biases, and perhaps an initial state.
Array recurrent(CellKind cell, const Arrays& in, const Indices& lengths, bool reverse);

}  // namespace qkv::fuzz
