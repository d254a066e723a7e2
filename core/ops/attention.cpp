#include "core/kernels/gemm.h"
#include "core/kernels/rows.h"
#include "core/kernels/scratch.h"
#include "core/ops.h"
#include "core/ops/dropout.h"
#include "core/ops/make.h"

namespace qkv {
namespace {

using kernels::gemm;
using kernels::Matrix;
using kernels::Scratch;

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
  /// Query `t` may attend to the first so many keys, never fewer than the query before it.
  Index visible(Index problem, Index t) const {
    const Index length = mask.key_lengths.size()
                             ? mask.key_lengths.data()[static_cast<std::size_t>(problem / heads)]
                             : keys;
    return mask.causal ? std::clamp<Index>(t + 1 + keys - queries, 0, length) : length;
  }
};

/// Queries [begin, end) of one problem. Their scores are computed together, and only for keys that
/// one of them sees: memory grows with the number of keys, not with its square, and the blocks that
/// a causal mask hides are skipped (as in Dao 2023, "FlashAttention-2", but with whole rows).
struct QueryBlock {
  Index problem, begin, end, keys;

  Index rows() const { return end - begin; }
};

constexpr Index block_rows = 64;

template <class F>
void for_each_block(const Layout& at, Index problem, F f) {
  for (Index t = 0; t < at.queries; t += block_rows) {
    const Index end = std::min(t + block_rows, at.queries);
    f(QueryBlock{problem, t, end, at.visible(problem, end - 1)});
  }
}

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

/// One head's numbers in q, k, v and whatever has their shapes.
template <class T>
class Head {
 public:
  Head(const Layout& at, Index problem) : at_(at), problem_(problem) {}

  Matrix<const T> of_queries(const T* x, Index row) const {
    return {x + at_.start(problem_, at_.queries) + row * at_.width, at_.width};
  }
  Matrix<const T> of_keys(const T* x, bool transposed = false) const {
    return {x + at_.start(problem_, at_.keys), at_.width, transposed};
  }
  Matrix<T> to_queries(T* x, Index row) const {
    return {x + at_.start(problem_, at_.queries) + row * at_.width, at_.width};
  }
  Matrix<T> to_keys(T* x) const { return {x + at_.start(problem_, at_.keys), at_.width}; }
  /// Position of a weight in an array [B, H, Tq, Tk].
  Index weight(Index t) const { return (problem_ * at_.queries + t) * at_.keys; }

 private:
  const Layout& at_;
  Index problem_;
};

/// scores = scale Q K^T for a block of queries.
template <class T>
void scores_of(const Layout& at, const QueryBlock& block, const T* q, const T* k, T* scores,
               Index stride) {
  const Head<T> head(at, block.problem);
  gemm(block.rows(), block.keys, at.head_width(), static_cast<T>(at.scale),
       head.of_queries(q, block.begin), head.of_keys(k, true), T{0}, Matrix<T>{scores, stride});
}

/// softmax(scale Q K^T + mask) V, and for each query its two numbers of `Normaliser`.
template <class T>
void forward(const Layout& at, const T* q, const T* k, const T* v, double dropout,
             const Random& random, T* y, T* normalisers) {
  parallel_for(at.pieces(), [&](Index first, Index last) {
    Scratch<T> scratch(std::min(block_rows, at.queries) * at.keys);
    for (Index p = first; p < last; ++p)
      for_each_block(at, p, [&](const QueryBlock& block) {
        const Head<T> head(at, p);
        T* weights = scratch.data();
        scores_of(at, block, q, k, weights, block.keys);
        for (Index t = block.begin; t < block.end; ++t) {
          T* row = weights + (t - block.begin) * block.keys;
          const auto by = kernels::softmax_row(row, row, at.visible(p, t), block.keys);
          T* kept = normalisers + 2 * (p * at.queries + t);
          kept[0] = by.max, kept[1] = by.sum;
          if (dropout > 0) drop(row, row, head.weight(t), block.keys, random, dropout);
        }
        gemm(block.rows(), at.head_width(), block.keys, T{1}, {weights, block.keys},
             head.of_keys(v), T{0}, head.to_queries(y, block.begin));
      });
  });
}

/// What goes into backward and comes out of it.
template <class T>
struct Backward {
  const T *q, *k, *v, *dy, *normalisers;
  T *dq, *dk, *dv;  ///< dk and dv start at 0
};

/// One block's share of the gradients; the weights are computed again rather than kept. `weights`,
/// `kept` (those after dropout) and `ds` are scratch memory, rows x keys each.
template <class T>
void backward_block(const Layout& at, const QueryBlock& block, const Backward<T>& b, double dropout,
                    const Random& random, T* weights, T* kept, T* ds) {
  const Head<T> head(at, block.problem);
  const Index rows = block.rows(), n = block.keys, width = at.head_width();
  const auto scale = static_cast<T>(at.scale);
  scores_of(at, block, b.q, b.k, weights, n);
  gemm(rows, n, width, T{1}, head.of_queries(b.dy, block.begin), head.of_keys(b.v, true), T{0},
       Matrix<T>{ds, n});
  for (Index t = block.begin; t < block.end; ++t) {
    const Index visible = at.visible(block.problem, t), first = (t - block.begin) * n;
    const T* by = b.normalisers + 2 * (block.problem * at.queries + t);
    const T max = by[0], factor = 1 / by[1];
    T *w = weights + first, *d = ds + first;
    for (Index j = 0; j < visible; ++j) w[j] = factor * math::exp(w[j] - max);
    std::fill(w + visible, w + n, T{0});
    if (dropout > 0) {
      drop(w, kept + first, head.weight(t), n, random, dropout);
      drop(d, d, head.weight(t), n, random, dropout);
    }
    kernels::softmax_row_backward(w, d, d, visible, T{1});
    std::fill(d + visible, d + n, T{0});
  }
  const T* used = dropout > 0 ? kept : weights;
  gemm(n, width, rows, T{1}, {used, n, true}, head.of_queries(b.dy, block.begin), T{1},
       head.to_keys(b.dv));
  gemm(n, width, rows, scale, {ds, n, true}, head.of_queries(b.q, block.begin), T{1},
       head.to_keys(b.dk));
  gemm(rows, width, n, scale, {ds, n}, head.of_keys(b.k), T{0}, head.to_queries(b.dq, block.begin));
}

template <class T>
void backward(const Layout& at, const Backward<T>& b, double dropout, const Random& random) {
  parallel_for(at.pieces(), [&](Index first, Index last) {
    const Index size = std::min(block_rows, at.queries) * at.keys;
    Scratch<T> weights(size), kept(dropout > 0 ? size : 0), ds(size);
    for (Index p = first; p < last; ++p)
      for_each_block(at, p, [&](const QueryBlock& block) {
        backward_block(at, block, b, dropout, random, weights.data(), kept.data(), ds.data());
      });
  });
}

}  // namespace

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionMask& mask,
                         const AttentionOptions& options) {
  const Layout at = checked_layout(q, k, mask, options);
  return make({at.batch, at.heads, at.queries, at.keys}, q.dtype(), [&]<class T>(T* weights) {
    const T *from_q = numbers(q, weights), *from_k = numbers(k, weights);
    parallel_for(at.pieces(), [&](Index begin, Index end) {
      for (Index p = begin; p < end; ++p) {
        T* row = weights + Head<T>(at, p).weight(0);
        scores_of(at, {p, 0, at.queries, at.keys}, from_q, from_k, row, at.keys);
        for (Index t = 0; t < at.queries; ++t, row += at.keys)
          kernels::softmax_row(row, row, at.visible(p, t), at.keys);
      }
    });
  });
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionMask& mask,
                 const AttentionOptions& options, const Random& random) {
  const Layout at = checked_layout(q, k, mask, options);
  require_same_dtype("attention", k, v);
  require(v.shape() == k.shape(), "[attention] values {} do not fit keys {}", v.shape(), k.shape());
  const double dropout = options.dropout;
  Tensor normalisers = Tensor::empty({at.batch, at.heads, at.queries, 2}, q.dtype());
  const Tensor y = make(q.shape(), q.dtype(), [&]<class T>(T* to) {
    forward(at, numbers(q, to), numbers(k, to), numbers(v, to), dropout, random, to,
            normalisers.mutable_data<T>().data());
  });
  return record(
      "attention", y, {q, k, v},
      [=, q = q.detach(), k = k.detach(), v = v.detach()](const Tensor& dy,
                                                          InputGradients& inputs) {
        Tensor dq = Tensor::empty(q.shape(), q.dtype());
        Tensor dk = Tensor::zeros(k.shape(), k.dtype());
        Tensor dv = Tensor::zeros(k.shape(), k.dtype());
        dispatch(dy.dtype(), [&](auto zero) {
          using T = decltype(zero);
          const auto data = [](const Tensor& x) { return x.data<T>().data(); };
          const auto to = [](Tensor& x) { return x.mutable_data<T>().data(); };
          backward<T>(
              at, {data(q), data(k), data(v), data(dy), data(normalisers), to(dq), to(dk), to(dv)},
              dropout, random);
        });
        inputs.add(0, std::move(dq));
        inputs.add(1, std::move(dk));
        inputs.add(2, std::move(dv));
      });
}

}  // namespace qkv
