#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "core/random.h"
#include "core/tensor.h"

/// Every op, once: free functions from tensors to a new tensor that record how to differentiate it.
///
/// Each op checks its shapes and throws ShapeError, IndexError, ValueError or TypeError with a
/// message "[op] ...". Operands must have one number type. Axes may be negative. B is the batch, T
/// time (Tq queries, Tk keys), D the width, H the number of heads, V the number of classes or the
/// size of the vocabulary. To add an op, see CONTRIBUTING.md.
namespace qkv {

// Arithmetic, with NumPy's broadcasting
// --------------------------------------------------------------------------------

Tensor add(const Tensor& a, const Tensor& b);
Tensor subtract(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
Tensor divide(const Tensor& a, const Tensor& b);

// One number at a time
// ---------------------------------------------------------------------------------------------------

/// y = scale x + shift
Tensor affine(const Tensor& x, double scale, double shift);
/// y = x^exponent
Tensor power(const Tensor& x, double exponent);
Tensor exp(const Tensor& x);
/// Natural logarithm.
Tensor log(const Tensor& x);
Tensor tanh(const Tensor& x);
/// max(x, 0); the derivative at 0 is 0.
Tensor relu(const Tensor& x);
/// x Phi(x) by the tanh approximation of Hendrycks & Gimpel 2016, "Gaussian Error Linear Units".
Tensor gelu(const Tensor& x);

// Shape
// ------------------------------------------------------------------------------------------------------------------

/// The same numbers in another shape; one size may be -1 and is inferred.
Tensor reshape(const Tensor& x, std::initializer_list<Index> sizes);
/// Axis i of the result is axis `axes[i]` of x.
Tensor permute(const Tensor& x, std::initializer_list<int> axes);
/// Elements [begin, end) along `axis`.
Tensor slice(const Tensor& x, int axis, Index begin, Index end);
/// Joins tensors that agree in all axes but `axis`.
Tensor concatenate(const std::vector<Tensor>& parts, int axis);
/// One row of each sequence. x [B, T, D], rows [B], each in [0, T) -> [B, D].
Tensor select_rows(const Tensor& x, const Indices& rows);

// Reductions
// -------------------------------------------------------------------------------------------------------------

/// Sum over all elements, a scalar.
Tensor sum(const Tensor& x);
/// Sum along `axis`, which disappears or, with `keep`, has size 1.
Tensor sum(const Tensor& x, int axis, bool keep = false);
/// Mean over all elements, a scalar.
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, int axis, bool keep = false);
/// Mean over the first `lengths[b]` rows of each sequence. x [B, T, D], lengths [B] -> [B, D];
/// zeros where empty.
Tensor masked_mean(const Tensor& x, const Indices& lengths);

// Products
// ---------------------------------------------------------------------------------------------------------------

enum class Transpose { none, first, second };
/// Matrix product over the last two axes, [..., M, K] x [..., K, N] -> [..., M, N]. Leading axes
/// are equal, or the second operand is one matrix. `transpose` takes one operand's matrices
/// transposed.
Tensor matmul(const Tensor& a, const Tensor& b, Transpose transpose = Transpose::none);
/// y = x W^T + b. x [..., in], weight [out, in], bias [out] or empty -> [..., out].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// Attention
// --------------------------------------------------------------------------------------------------------------

/// Softmax along the last axis. A row that is -inf everywhere gives zeros.
Tensor softmax(const Tensor& x);

/// Which keys a query may attend to.
struct AttentionMask {
  Indices key_lengths;  ///< [B]: keys of sequence b at or after key_lengths[b] are padding; empty:
                        ///< none are
  bool causal = false;  ///< query t sees keys up to t, both counted from the end
};

struct AttentionOptions {
  Index heads = 1;   ///< H, which divides D
  double scale = 1;  ///< factor of the scores; 1 / sqrt(D / H) in Vaswani et al. 2017; 0 makes the
                     ///< weights uniform
  double dropout = 0;  ///< probability in [0, 1) that a weight is dropped
};

/// softmax(scale Q_h K_h^T + mask) V_h for each head h, a head being D / H adjacent columns
/// (Vaswani et al. 2017, "Attention Is All You Need", 3.2). q [B, Tq, D], k and v [B, Tk, D] -> [B,
/// Tq, D]. A query without any key gives zeros.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionMask& mask,
                 const AttentionOptions& options, const Random& random);
/// The weights of `attention` before dropout, [B, H, Tq, Tk]; a constant.
Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionMask& mask,
                         const AttentionOptions& options);

// Layers' ops
// ------------------------------------------------------------------------------------------------------------

/// Rows of a table. weight [V, D], ids any shape with values in [0, V) -> [ids..., D].
Tensor embedding(const Tensor& weight, const Indices& ids);
/// (x - mean) / sqrt(variance + epsilon) gain + bias over the last axis (Ba et al. 2016, "Layer
/// Normalization"); gain [D], bias [D] or empty.
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias = {},
                  double epsilon = 1e-5);
/// Turns each head's numbers i and i + D / 2H of position t by the angle t / 10000^(2i H / D), so
/// that the product of a query and a key depends on their distance alone (Su et al. 2021,
/// "RoFormer"; the halves paired as in GPT-NeoX). x [B, T, D], turns [T, D / H] -> [B, T, D].
Tensor rotary(const Tensor& x, Index heads, const Tensor& turns);
/// The cosines and sines for `rotary` at positions `first` to `first + time`.
Tensor rotary_turns(Index time, Index head_width, Index first, DType dtype);
/// Zeroes each number with the given probability in [0, 1) and divides the others by 1 -
/// probability (Srivastava et al. 2014).
Tensor dropout(const Tensor& x, double probability, const Random& random);

// Losses
// -----------------------------------------------------------------------------------------------------------------

/// Mean over the rows whose target is not negative of -log softmax(logits)[target]. logits [...,
/// V], targets [...] with values below V -> scalar; 0 when no row counts.
Tensor cross_entropy(const Tensor& logits, const Indices& targets);

// Operators
// --------------------------------------------------------------------------------------------------------------

inline Tensor operator+(const Tensor& a, const Tensor& b) {
  return add(a, b);
}
inline Tensor operator-(const Tensor& a, const Tensor& b) {
  return subtract(a, b);
}
inline Tensor operator*(const Tensor& a, const Tensor& b) {
  return multiply(a, b);
}
inline Tensor operator/(const Tensor& a, const Tensor& b) {
  return divide(a, b);
}
inline Tensor operator+(const Tensor& x, double shift) {
  return affine(x, 1, shift);
}
inline Tensor operator+(double shift, const Tensor& x) {
  return affine(x, 1, shift);
}
inline Tensor operator-(const Tensor& x, double shift) {
  return affine(x, 1, -shift);
}
inline Tensor operator-(double shift, const Tensor& x) {
  return affine(x, -1, shift);
}
inline Tensor operator*(const Tensor& x, double scale) {
  return affine(x, scale, 0);
}
inline Tensor operator*(double scale, const Tensor& x) {
  return affine(x, scale, 0);
}
inline Tensor operator/(const Tensor& x, double divisor) {
  return affine(x, 1 / divisor, 0);
}
inline Tensor operator/(double dividend, const Tensor& x) {
  return affine(power(x, -1), dividend, 0);
}
inline Tensor operator-(const Tensor& x) {
  return affine(x, -1, 0);
}

}  // namespace qkv
