#include "core/kernels/gemm.h"
#include "core/kernels/rows.h"
#include "core/ops.h"
#include "core/ops/dropout.h"
#include "core/ops/make.h"

namespace qkv {
namespace {

using kernels::gemm;
using kernels::Matrix;

/// Sizes of one call, and where each head's matrices lie.
struct Layout {
  Index batch, queries, keys, width, heads;
  double scale;
  AttentionMask mask;

  Index head_width() const { return width / heads; }
  Index problems() const { return batch * heads; }
  Pieces pieces() const { return cut(problems(), queries * keys * head_width() / 4); }
  /// Where head `problem % heads` of sequence `problem / heads` starts in an array [B, rows, D].
  Index start(Index problem, Index rows) const {
    return problem / heads * rows * width + problem % heads * head_width();
  }
  /// Query `t` may attend to the first so many keys.
  Index visible(Index problem, Index t) const {
    const Index length = mask.key_lengths.size()
                             ? mask.key_lengths.data()[static_cast<std::size_t>(problem / heads)]
                             : keys;
    return mask.causal ? std::clamp<Index>(t + 1 + keys - queries, 0, length) : length;
  }
};

Layout checked_layout(const Tensor& q, const Tensor& k, const AttentionMask& mask,
                      const AttentionOptions& options) {
  require_same_dtype("attention", q, k);
  require(q.rank() == 3 && k.rank() == 3 && q.dim(0) == k.dim(0) && q.dim(2) == k.dim(2),
          "[attention] needs q (B, Tq, D) and k (B, Tk, D), got {} and {}", q.shape(), k.shape());
  require<ValueError>(options.heads >= 1 && q.dim(2) % options.heads == 0,
                      "[attention] {} heads do not divide the width {}", options.heads, q.dim(2));
  require<ValueError>(options.dropout >= 0 && options.dropout < 1,
                      "[attention] dropout must be in [0, 1), got {}", options.dropout);
  if (mask.key_lengths.size()) {
    require(mask.key_lengths.shape() == Shape{q.dim(0)},
            "[attention] key lengths {} do not fit a batch of {}", mask.key_lengths.shape(),
            q.dim(0));
    for (const auto length : mask.key_lengths.data())
      require<IndexError>(length >= 0 && length <= k.dim(1),
                          "[attention] key length {} is outside [0, {}]", length, k.dim(1));
  }
  return {q.dim(0), q.dim(1), k.dim(1), q.dim(2), options.heads, options.scale, mask};
}

/// softmax(scale Q K^T + mask), [B, H, Tq, Tk].
Tensor weights_of(const Tensor& q, const Tensor& k, const Layout& at) {
  return make({at.batch, at.heads, at.queries, at.keys}, q.dtype(), [&]<class T>(T* weights) {
    const T *from_q = numbers(q, weights), *from_k = numbers(k, weights);
    parallel_for(at.pieces(), [&, from_q, from_k](Index begin, Index end) {
      for (Index p = begin; p < end; ++p) {
        T* w = weights + p * at.queries * at.keys;
        gemm(at.queries, at.keys, at.head_width(), static_cast<T>(at.scale),
             {from_q + at.start(p, at.queries), at.width},
             {from_k + at.start(p, at.keys), at.width, true}, T{0}, Matrix<T>{w, at.keys});
        for (Index t = 0; t < at.queries; ++t, w += at.keys)
          kernels::softmax_row(w, w, at.visible(p, t), at.keys);
      }
    });
  });
}

/// The product of weights [B, H, Tq, Tk] with the heads of v [B, Tk, D], or with transposed weights
/// of v [B, Tq, D].
Tensor mixed(const Tensor& weights, bool transposed, const Tensor& v, const Layout& at,
             double scale) {
  const Index rows = transposed ? at.keys : at.queries, inner = transposed ? at.queries : at.keys;
  return make({at.batch, rows, at.width}, v.dtype(), [&]<class T>(T* y) {
    const T *w = numbers(weights, y), *from = numbers(v, y);
    parallel_for(at.pieces(), [&, w, from](Index begin, Index end) {
      for (Index p = begin; p < end; ++p)
        gemm(rows, at.head_width(), inner, static_cast<T>(scale),
             {w + p * at.queries * at.keys, at.keys, transposed},
             {from + at.start(p, inner), at.width}, T{0},
             Matrix<T>{y + at.start(p, rows), at.width});
    });
  });
}

/// Derivative of the scores, [B, H, Tq, Tk], from that of the output.
Tensor scores_backward(const Tensor& weights, const Tensor& v, const Tensor& dy, const Layout& at,
                       double dropout, const Random& random) {
  return make(weights.shape(), dy.dtype(), [&]<class T>(T* ds) {
    const T *from_w = numbers(weights, ds), *from_v = numbers(v, ds), *from_dy = numbers(dy, ds);
    parallel_for(at.pieces(), [&, from_w, from_v, from_dy](Index begin, Index end) {
      for (Index p = begin; p < end; ++p) {
        const Index offset = p * at.queries * at.keys;
        gemm(at.queries, at.keys, at.head_width(), T{1},
             {from_dy + at.start(p, at.queries), at.width},
             {from_v + at.start(p, at.keys), at.width, true}, T{0},
             Matrix<T>{ds + offset, at.keys});
        for (Index t = 0; t < at.queries; ++t) {
          const Index row = offset + t * at.keys;
          if (dropout > 0) drop(ds + row, ds + row, row, at.keys, random, dropout);
          kernels::softmax_row_backward(from_w + row, ds + row, ds + row, at.keys, T{1});
        }
      }
    });
  });
}

}  // namespace

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionMask& mask,
                         const AttentionOptions& options) {
  return weights_of(q, k, checked_layout(q, k, mask, options));
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionMask& mask,
                 const AttentionOptions& options, const Random& random) {
  const Layout at = checked_layout(q, k, mask, options);
  require_same_dtype("attention", k, v);
  require(v.shape() == k.shape(), "[attention] values {} do not fit keys {}", v.shape(), k.shape());
  const Tensor weights = weights_of(q, k, at);
  const Tensor kept = dropout(weights, options.dropout, random);
  return record("attention", mixed(kept, false, v, at, 1), {q, k, v},
                [=, q = q.detach(), k = k.detach(), v = v.detach(), drop = options.dropout](
                    const Tensor& dy, InputGradients& inputs) {
                  inputs.add(2, [&] { return mixed(kept, true, dy, at, 1); });
                  if (!inputs.needs(0) && !inputs.needs(1)) return;
                  const Tensor ds = scores_backward(weights, v, dy, at, drop, random);
                  inputs.add(0, [&] { return mixed(ds, false, k, at, at.scale); });
                  inputs.add(1, [&] { return mixed(ds, true, q, at, at.scale); });
                });
}

}  // namespace qkv
