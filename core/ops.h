#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "core/random.h"
#include "core/tensor.h"

/// Every op, once: free functions from tensors to a new tensor that record how to differentiate it.
///
/// Each op checks its operands and throws ShapeError, IndexError, ValueError or TypeError with a
/// message "[op] ...". Operands must have one dtype. Axes may be negative. Shapes are written
/// [batch, ...], with these letters:
///
///     B  batch                  D  width (d_model)
///     T  time (sequence)        H  heads, or the hidden width of a recurrent network
///     Tq, Tk  queries, keys     V  classes, or the size of the vocabulary
///
/// To add an op, see CONTRIBUTING.md.
namespace qkv {

// ---- Arithmetic, with NumPy's broadcasting ------------------------------------------------------

Tensor add(const Tensor& a, const Tensor& b);
/// a + b, in the buffer of `b` when no other tensor shares it and the shapes are equal.
Tensor add(const Tensor& a, Tensor&& b);
Tensor subtract(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
Tensor divide(const Tensor& a, const Tensor& b);
Tensor divide(const Tensor& x, double divisor);
Tensor divide(double dividend, const Tensor& x);
/// The larger, or the smaller, of a and b; NaN if one of them is. Equal elements get half of the
/// gradient each.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
/// y = scale x + shift
Tensor affine(const Tensor& x, double scale, double shift);
/// y = x^exponent; the derivative for exponent 0 is 0 everywhere.
Tensor power(const Tensor& x, double exponent);
Tensor sqrt(const Tensor& x);
/// |x|; the derivative at 0 is 0.
Tensor abs(const Tensor& x);
/// min(max(x, low), high); the derivative outside the bounds is 0. Throws ValueError when low >
/// high (PyTorch returns high).
Tensor clamp(const Tensor& x, double low, double high);
Tensor exp(const Tensor& x);
/// Natural logarithm.
Tensor log(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
/// 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
Tensor erf(const Tensor& x);

// ---- Activations --------------------------------------------------------------------------------

Tensor tanh(const Tensor& x);
/// 1 / (1 + exp(-x))
Tensor sigmoid(const Tensor& x);
/// log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)), accurate for x of any size (PyTorch returns x
/// from 20 on).
Tensor softplus(const Tensor& x);
/// max(x, 0); the derivative at 0 is 0.
Tensor relu(const Tensor& x);
/// x sigmoid(x) (Elfwing et al. 2017, "Sigmoid-Weighted Linear Units"), also known as swish.
Tensor silu(const Tensor& x);
/// x Phi(x) by the tanh approximation of Hendrycks & Gimpel 2016, "Gaussian Error Linear Units".
/// PyTorch's default is `gelu_exact`.
Tensor gelu(const Tensor& x);
/// x Phi(x) by the error function, ibid.
Tensor gelu_exact(const Tensor& x);

// ---- Comparison and selection, with broadcasting ------------------------------------------------

/// 1 where the comparison holds, 0 elsewhere; constants of the operands' dtype.
Tensor equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
/// a where `condition` is not 0, b elsewhere. The condition is not differentiated.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
/// x with `value` where `mask`, which broadcasts to x, is not 0.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);

// ---- Shape --------------------------------------------------------------------------------------

/// x in another shape with the same elements; one size may be -1 and is inferred.
Tensor reshape(const Tensor& x, std::initializer_list<Index> sizes);
Tensor reshape(const Tensor& x, const Shape& shape);
/// x repeated along the axes in which `shape` is larger, as broadcasting does.
Tensor expand(const Tensor& x, const Shape& shape);
/// x repeated to these sizes; -1 keeps the size of an axis of x.
Tensor expand(const Tensor& x, std::initializer_list<Index> sizes);
/// Axis i of the result is axis `axes[i]` of x.
Tensor permute(const Tensor& x, std::initializer_list<int> axes);
Tensor permute(const Tensor& x, std::span<const int> axes);
/// Elements begin, begin + step, ... before `end` along `axis`. A negative begin or end counts from
/// the end of the axis, as in Python; one outside the axis throws IndexError, where Python clips
/// it.
Tensor slice(const Tensor& x, int axis, Index begin, Index end, Index step = 1);
/// Joins tensors that agree in all axes but `axis`.
Tensor concatenate(const std::vector<Tensor>& tensors, int axis);
/// Joins tensors of one shape along a new axis, which is `axis` of the result.
Tensor stack(const std::vector<Tensor>& tensors, int axis);
/// At most `chunks` slices of ceil(size / chunks) along `axis`, of which the last may be smaller:
/// PyTorch's chunk. Throws ValueError when chunks < 1.
std::vector<Tensor> split(const Tensor& x, int axis, Index chunks);
/// Slices of `size` along `axis`, of which the last may be smaller: PyTorch's split. Throws
/// ValueError when size < 1.
std::vector<Tensor> split_by_size(const Tensor& x, int axis, Index size);
/// Pads `axis` with `before` and `after` elements equal to `value`.
Tensor pad(const Tensor& x, int axis, Index before, Index after, double value = 0);

// ---- Indexing -----------------------------------------------------------------------------------

/// y[..., i, ...] = x[..., ids[..., i, ...], ...] along `axis`; x and ids agree in all other axes.
/// ids in [0, size of the axis) -> the shape of ids.
Tensor gather(const Tensor& x, int axis, const Indices& ids);
/// One row of each sequence. x [B, T, D], rows [B], each in [0, T) -> [B, D].
Tensor select_rows(const Tensor& x, const Indices& rows);
/// Rows of a table. weight [V, D], ids of any shape with values in [0, V) -> [ids..., D]. The row
/// `padding_idx` receives no gradient. Throws IndexError for ids and a padding_idx outside [0, V).
Tensor embedding(const Tensor& weight, const Indices& ids, std::optional<Index> padding_idx = {});

// ---- Reductions ---------------------------------------------------------------------------------

// Over one axis, several, or by default all: sum(x), sum(x, -1), sum(x, {0, 2}). The reduced axes
// disappear or, with `keep`, have size 1.

Tensor sum(const Tensor& x, const Axes& axes = {}, bool keep = false);
/// 0 over no elements (PyTorch: NaN).
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keep = false);
/// Sum of squared distances from the mean, divided by the number of elements less `correction` (1
/// gives the sample variance, PyTorch's default). Throws ValueError when that is not positive.
Tensor variance(const Tensor& x, const Axes& axes = {}, bool keep = false, Index correction = 0);
/// y[t] = x[0] + ... + x[t] along `axis`.
Tensor cumulative_sum(const Tensor& x, int axis);
/// Mean over the first `lengths[b]` rows of each sequence. x [B, T, D], lengths [B] -> [B, D];
/// zeros where empty.
Tensor masked_mean(const Tensor& x, const Indices& lengths);
/// Masked maximum over time, max-over-time pooling (Collobert et al. 2011, "Natural Language
/// Processing (Almost) from Scratch").
Tensor masked_max(const Tensor& x, const Indices& lengths);
/// NaN is the largest and the smallest. The gradient goes to the first of equal elements, as that
/// of PyTorch's max(dim); its amax divides it among them. Throws ValueError over no elements.
Tensor max(const Tensor& x, const Axes& axes = {}, bool keep = false);
Tensor min(const Tensor& x, const Axes& axes = {}, bool keep = false);
/// The index of `max`'s element along the axis or, over several, along all of them flattened. Of
/// equal elements the first; NaN is the largest. Throws ValueError over no elements.
Indices argmax(const Tensor& x, const Axes& axes = {}, bool keep = false);

struct TopK {
  Tensor values;
  Indices indices;  ///< along the axis
};
/// The `count` largest elements along `axis`, largest first, of equal ones the first; NaN is the
/// largest. Throws ValueError when count is outside [0, size of the axis].
TopK topk(const Tensor& x, Index count, int axis = -1);

// ---- Softmax ------------------------------------------------------------------------------------

/// Softmax along an axis. Where all elements along it are -inf it gives zeros (PyTorch: NaN); where
/// there is a NaN or +inf, NaN.
Tensor softmax(const Tensor& x, int axis = -1);
/// log(softmax(x)) along an axis.
Tensor log_softmax(const Tensor& x, int axis = -1);
/// log(sum(exp(x))); -inf with a derivative of 0 where all elements are -inf or there are none.
Tensor logsumexp(const Tensor& x, const Axes& axes = {}, bool keep = false);

// ---- Products -----------------------------------------------------------------------------------

enum class Transpose { none, first, second };
/// Matrix product over the last two axes, [..., M, K] x [..., K, N] -> [..., M, N]. Leading axes
/// broadcast. `transpose` names the operand whose matrices are transposed. A vector is a row as
/// first and a column as second operand, [K] x [..., K, N] -> [..., N] and [..., M, K] x [K] ->
/// [..., M]; two of them give a scalar.
Tensor matmul(const Tensor& a, const Tensor& b, Transpose transpose = Transpose::none);
/// y = x W^T + b. x [..., in], weight [out, in], bias [out] or empty -> [..., out].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// linear(gelu(x), weight, bias) with gelu(x) recomputed in backward: of the wide hidden layer of a
/// transformer's feed-forward network only x is saved.
Tensor gelu_linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

struct Conv1dOptions {
  Index stride = 1;    ///< steps between two positions of the kernel
  Index padding = 0;   ///< zeros before and after each sequence
  Index dilation = 1;  ///< steps between two rows under the kernel
};
/// y[t] = sum over k of weight[:, :, k] x[t stride + k dilation - padding] + bias: a convolution
/// over time (Kim 2014, "Convolutional Neural Networks for Sentence Classification"). x [B, T, in],
/// weight [out, in, K], bias [out] or empty -> [B, T', out], T' being the number of positions at
/// which the kernel fits. PyTorch has the channels before the time.
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv1dOptions& options = {});

// ---- Attention ----------------------------------------------------------------------------------

/// Which keys a query may attend to.
struct AttentionMask {
  Indices key_lengths = {};  ///< [B]: keys of sequence b at or after key_lengths[b] are padding;
                             ///< empty: none are
  bool causal = false;  ///< query t attends to keys up to t, both counted from the end; PyTorch's
                        ///< is_causal counts both from the start, which differs when Tq != Tk
  Tensor bias = {};     ///< broadcasts to [B, H, Tq, Tk] and is added to the scaled scores, such as
                        ///< a learned relative bias (Shaw et al. 2018); -inf masks a key; empty: 0
};

struct AttentionOptions {
  Index heads = 1;     ///< H, which divides D
  double scale = 1;    ///< factor of the scores; 1 / sqrt(D / H) in Vaswani et al. 2017, PyTorch's
                       ///< default; 0 makes the weights uniform, or those of the bias alone
  double dropout = 0;  ///< probability in [0, 1) that a weight is dropped
};

/// softmax(scale Q_h K_h^T + mask) V_h for each head h, a head being D / H adjacent columns
/// (Vaswani et al. 2017, "Attention Is All You Need", 3.2). q [B, Tq, D], k and v [B, Tk, D] -> [B,
/// Tq, D]. A query without a visible key gives zeros (PyTorch: NaN). Backward recomputes the
/// weights; a bias that needs a gradient takes RAM of [B, H, Tq, Tk].
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionMask& mask,
                 const AttentionOptions& options, const Random& random);
/// The weights of `attention` before dropout, [B, H, Tq, Tk]; a constant.
Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionMask& mask,
                         const AttentionOptions& options);

/// Rotary position embedding: rotates each pair (x_i, x_{i + d/2}) of a head of width d = D / H at
/// position t by the angle t / 10000^(2 i / d), so that the product of a query and a key depends on
/// their distance alone (Su et al. 2021, "RoFormer"; halves paired as in GPT-NeoX). x [B, T, D],
/// cos_sin [T, D / H] as from `rotary_cos_sin` -> [B, T, D].
Tensor rotary(const Tensor& x, Index heads, const Tensor& cos_sin);
/// The cos/sin table of `rotary` for positions [first, first + time): [time, head_width], in each
/// row the cosines of the d / 2 angles, then their sines. Throws ValueError for an odd width.
Tensor rotary_cos_sin(Index time, Index head_width, Index first, DType dtype);

// ---- Recurrent networks -------------------------------------------------------------------------

/// Weights of one direction, in PyTorch's shapes and order of gates: G gates of width H.
struct RecurrentWeights {
  const Tensor& input;        ///< [G H, I]
  const Tensor& hidden;       ///< [G H, H]
  const Tensor& input_bias;   ///< [G H]
  const Tensor& hidden_bias;  ///< [G H]
};

/// The state of a recurrent network between two steps. Empty tensors stand for zeros.
struct RecurrentState {
  Tensor h = {};  ///< hidden state [B, H]
  Tensor c = {};  ///< [B, H]: an LSTM's cell state; else empty
};
struct RecurrentOutput {
  Tensor states;        ///< hidden state after each step, [B, T, H]; zeros in padding
  RecurrentState last;  ///< after the last step that is not padding; without any the initial state
};

// The hidden states of a recurrent network that reads x [B, T, I] step by step, from a state of
// zeros -> [B, T, H], or from `initial`, with the last state as well. Positions at or after
// lengths[b] (empty: none are) are padding: they are not read, and their states are zeros.
// `reverse` reads from the last position to the first. Below, i and h stand for x W_ih^T + b_ih and
// h' W_hh^T + b_hh of a gate, h' being the state of the step before.

/// tanh(i + h) (Elman 1990, "Finding Structure in Time"); G = 1.
Tensor rnn(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
           bool reverse = false);
RecurrentOutput rnn(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
                    const RecurrentState& initial, bool reverse = false);
/// (1 - z) n + z h' with r, z = sigmoid(i + h), n = tanh(i + r h); gates r, z, n (Cho et al. 2014,
/// "Learning Phrase Representations using RNN Encoder-Decoder", with cuDNN's order of r and W).
Tensor gru(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
           bool reverse = false);
RecurrentOutput gru(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
                    const RecurrentState& initial, bool reverse = false);
/// o tanh(c) with c = f c' + i g; gates i, f, g, o, of which g is a tanh and the others sigmoids
/// (Hochreiter & Schmidhuber 1997, "Long Short-Term Memory"; Gers et al. 2000).
Tensor lstm(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
            bool reverse = false);
RecurrentOutput lstm(const Tensor& x, const RecurrentWeights& weights, const Indices& lengths,
                     const RecurrentState& initial, bool reverse = false);

// ---- Normalization and dropout ------------------------------------------------------------------

/// (x - mean) / sqrt(variance + epsilon) gain + bias over the last axis (Ba et al. 2016, "Layer
/// Normalization"); gain [D], bias [D] or empty.
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias = {},
                  double epsilon = 1e-5);
/// x / sqrt(mean(x^2) + epsilon) gain over the last axis (Zhang & Sennrich 2019, "Root Mean Square
/// Layer Normalization"); gain [D].
Tensor rms_norm(const Tensor& x, const Tensor& gain, double epsilon = 1e-5);
/// Zeroes each element with the given probability in [0, 1) and divides the others by 1 -
/// probability (Srivastava et al. 2014; PyTorch also takes 1).
Tensor dropout(const Tensor& x, double probability, const Random& random);

// ---- Losses -------------------------------------------------------------------------------------

/// How the losses of all rows or elements are reduced: not at all, to their sum, or to their mean.
enum class Reduction { none, sum, mean };

/// Mean of -log softmax(logits)[target] over the rows whose target is not negative. logits [...,
/// V], targets [...] with values below V -> scalar; 0 when no row counts (PyTorch: NaN). The
/// gradient of a row that does not count is 0, whatever its logits.
Tensor cross_entropy(const Tensor& logits, const Indices& targets);

struct CrossEntropyOptions {
  double label_smoothing = 0;  ///< probability in [0, 1) that is moved from the target to a uniform
                               ///< distribution over all classes (Szegedy et al. 2016)
  Tensor class_weights = {};   ///< [V]: weight of each class; empty: 1
  Index ignore_index = -1;     ///< rows with this target do not count either (PyTorch: only they,
                               ///< -100 by default)
  Reduction reduction = Reduction::mean;  ///< none: the shape of the targets, 0 for rows that do
                                          ///< not count
};
/// Cross-entropy with options. The mean is weighted, each row by the weight of its target's class;
/// 0 when all these weights are 0. With smoothing s the loss of a row is (1 - s) times that of its
/// target plus s / V times the sum of -log softmax(logits)[c] over classes c, each weighted by its
/// class. Throws ValueError for a class weight that is negative, infinite or NaN.
Tensor cross_entropy(const Tensor& logits, const Indices& targets,
                     const CrossEntropyOptions& options);
/// -(t log p + (1 - t) log(1 - p)); logarithms are at least -100. Operands of one shape, p and t in
/// [0, 1] -> scalar, or that shape where nothing is reduced.
Tensor binary_cross_entropy(const Tensor& probabilities, const Tensor& targets,
                            Reduction reduction = Reduction::mean);
/// Binary cross-entropy with p = sigmoid(logits), accurate for logits of any size: an infinite one
/// that agrees with its target has the loss 0 (PyTorch: NaN). `pos_weight`, a constant that
/// broadcasts to the logits (empty: 1), multiplies t log p. Throws ValueError when it is negative,
/// infinite or NaN.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                        Reduction reduction = Reduction::mean,
                                        const Tensor& pos_weight = {});
/// (p - t)^2. Operands of one shape -> scalar, or that shape where nothing is reduced.
Tensor mean_squared_error(const Tensor& predictions, const Tensor& targets,
                          Reduction reduction = Reduction::mean);

// ---- Operators ----------------------------------------------------------------------------------

inline Tensor operator+(const Tensor& a, const Tensor& b) {
  return add(a, b);
}
inline Tensor operator+(const Tensor& a, Tensor&& b) {
  return add(a, std::move(b));
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
// x + -0.0 is x for every x, 0.0 + -0.0 is not.
inline Tensor operator*(const Tensor& x, double scale) {
  return affine(x, scale, -0.0);
}
inline Tensor operator*(double scale, const Tensor& x) {
  return affine(x, scale, -0.0);
}
inline Tensor operator/(const Tensor& x, double divisor) {
  return divide(x, divisor);
}
inline Tensor operator/(double dividend, const Tensor& x) {
  return divide(dividend, x);
}
inline Tensor operator-(const Tensor& x) {
  return affine(x, -1, -0.0);
}

}  // namespace qkv
