#include <array>
#include <optional>

#include "core/kernels/columns.h"
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
  /// Keys that belong to the sequence of a problem.
  Index length(Index problem) const {
    return mask.key_lengths.size()
               ? mask.key_lengths.data()[static_cast<std::size_t>(problem / heads)]
               : keys;
  }
  /// Query `t` may attend to the first so many of `length` keys, never fewer than the query before.
  Index visible(Index length, Index t) const {
    return mask.causal ? std::clamp<Index>(t + 1 + keys - queries, 0, length) : length;
  }
};

/// Queries [begin, end) of one problem. Their scores are computed together, and only for keys that
/// one of them sees: memory grows with the number of keys, not with its square, and the blocks that
/// a causal mask hides are skipped (as in Dao 2023, "FlashAttention-2", but with whole rows).
/// Scores and weights have a row for each key and a column for each query.
struct QueryBlock {
  Index problem, length, begin, end, keys;

  Index queries() const { return end - begin; }
};

constexpr Index block_queries = 32;

/// Columns for `queries` queries, in whole vectors.
template <class T>
Index columns_for(Index queries) {
  constexpr Index whole = kernels::width<T>;
  return (queries + whole - 1) / whole * whole;
}

template <class F>
void for_each_block(const Layout& at, Index problem, F f) {
  const Index length = at.length(problem);
  for (Index t = 0; t < at.queries; t += block_queries) {
    const Index end = std::min(t + block_queries, at.queries);
    f(QueryBlock{problem, length, t, end, at.visible(length, end - 1)});
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
  Head(const Layout& at, Index problem)
      : width_(at.width),
        queries_(at.start(problem, at.queries)),
        keys_(at.start(problem, at.keys)) {}

  Matrix<const T> of_queries(const T* x, Index row, bool transposed = false) const {
    return {x + queries_ + row * width_, width_, transposed};
  }
  Matrix<const T> of_keys(const T* x, bool transposed = false) const {
    return {x + keys_, width_, transposed};
  }
  Matrix<T> to_queries(T* x, Index row) const { return {x + queries_ + row * width_, width_}; }
  Matrix<T> to_keys(T* x) const { return {x + keys_, width_}; }

 private:
  Index width_, queries_, keys_;
};

/// Scratch memory of a block: a matrix with a row for each key and a column for each query.
template <class T>
class Scores {
 public:
  explicit Scores(const Layout& at)
      : Scores(at.keys * columns_for<T>(std::min(block_queries, at.queries))) {}

  T* data() const { return data_.data(); }
  Matrix<T> of(const QueryBlock& block) const { return {data(), columns_for<T>(block.queries())}; }

 private:
  explicit Scores(Index size) : data_(size) { std::fill_n(data_.data(), size, T{0}); }

  Scratch<T> data_;
};

/// How many keys each query of a block sees, and what its weights were divided by.
template <class T>
struct Statistics {
  alignas(64) std::array<T, block_queries> lengths;
  std::array<T, block_queries> max, sum;

  Statistics(const Layout& at, const QueryBlock& block) {
    const Index columns = columns_for<T>(block.queries());
    for (Index c = 0; c < columns; ++c)
      lengths[static_cast<std::size_t>(c)] =
          static_cast<T>(at.visible(block.length, std::min(block.begin + c, block.end - 1)));
  }
  kernels::Columns<T> columns(const QueryBlock& block, T* data) const {
    return {data, block.keys, columns_for<T>(block.queries()), lengths.data()};
  }
};

/// Multiplies each weight of a block by 0 or by 1 / (1 - probability).
template <class T>
void drop_weights(const Layout& at, const QueryBlock& block, T* weights, const Random& random,
                  double probability) {
  const Index columns = columns_for<T>(block.queries());
  for (Index key = 0; key < block.keys; ++key) {
    T* row = weights + key * columns;
    drop(row, row, (block.problem * at.keys + key) * at.queries + block.begin, block.queries(),
         random, probability);
  }
}

template <class T>
void multiply(T* x, const T* by, Index count) {
  kernels::map_row(count, x, [=](auto at) { return at(x) * at(by); });
}

/// scale K Q^T for a block of queries.
template <class T>
void scores_of(const Layout& at, const Head<T>& head, const QueryBlock& block, const T* q,
               const T* k, const Matrix<T>& scores) {
  gemm(block.keys, block.queries(), at.head_width(), static_cast<T>(at.scale), head.of_keys(k),
       head.of_queries(q, block.begin, true), T{0}, scores);
}

/// softmax(scale Q K^T + mask) V, and for each problem what the exponentials were divided by: the
/// maximum for each query, then the sum.
template <class T>
void forward(const Layout& at, const T* q, const T* k, const T* v, double dropout,
             const Random& random, T* y, T* normalisers) {
  parallel_for(at.pieces(), [&](Index first, Index last) {
    const Scores<T> scratch(at);
    for (Index p = first; p < last; ++p) {
      const Head<T> head(at, p);
      for_each_block(at, p, [&](const QueryBlock& block) {
        const Matrix<T> weights = scratch.of(block);
        scores_of(at, head, block, q, k, weights);
        Statistics<T> now(at, block);
        kernels::softmax_columns(now.columns(block, weights.data), now.max.data(), now.sum.data());
        T* kept = normalisers + 2 * p * at.queries + block.begin;
        std::copy_n(now.max.data(), block.queries(), kept);
        std::copy_n(now.sum.data(), block.queries(), kept + at.queries);
        if (dropout > 0) drop_weights(at, block, weights.data, random, dropout);
        gemm(block.queries(), at.head_width(), block.keys, T{1},
             {weights.data, weights.stride, true}, head.of_keys(v), T{0},
             head.to_queries(y, block.begin));
      });
    }
  });
}

/// What goes into backward and comes out of it.
template <class T>
struct Backward {
  const T *q, *k, *v, *dy, *normalisers;
  T *dq, *dk, *dv;  ///< dk and dv start at 0; dq may be q
};

/// One block's share of the gradients; the weights are computed again rather than kept. `weights`,
/// `kept` (those after dropout) and `ds` are scratch memory.
template <class T>
void backward_block(const Layout& at, const Head<T>& head, const QueryBlock& block,
                    const Backward<T>& b, double dropout, const Random& random,
                    const Matrix<T>& weights, const Matrix<T>& kept, const Matrix<T>& ds) {
  const Index queries = block.queries(), n = block.keys, width = at.head_width();
  const auto scale = static_cast<T>(at.scale);
  const Matrix<const T> q = head.of_queries(b.q, block.begin),
                        dy = head.of_queries(b.dy, block.begin);
  scores_of(at, head, block, b.q, b.k, weights);
  gemm(n, queries, width, T{1}, head.of_keys(b.v), head.of_queries(b.dy, block.begin, true), T{0},
       ds);
  const Index size = n * weights.stride;
  if (dropout > 0) {
    std::fill_n(kept.data, size, T{1});
    drop_weights(at, block, kept.data, random, dropout);
    multiply(ds.data, kept.data, size);
  }
  Statistics<T> now(at, block);
  const T* by = b.normalisers + 2 * block.problem * at.queries + block.begin;
  now.max.fill(0), now.sum.fill(0);
  std::copy_n(by, queries, now.max.data());
  std::copy_n(by + at.queries, queries, now.sum.data());
  kernels::softmax_columns_again(now.columns(block, weights.data), ds.data, now.max.data(),
                                 now.sum.data());
  if (dropout > 0) multiply(kept.data, weights.data, size);
  const Matrix<T>& used = dropout > 0 ? kept : weights;
  gemm(n, width, queries, T{1}, {used.data, used.stride}, dy, T{1}, head.to_keys(b.dv));
  gemm(n, width, queries, scale, {ds.data, ds.stride}, q, T{1}, head.to_keys(b.dk));
  gemm(queries, width, n, scale, {ds.data, ds.stride, true}, head.of_keys(b.k), T{0},
       head.to_queries(b.dq, block.begin));
}

template <class T>
void backward(const Layout& at, const Backward<T>& b, double dropout, const Random& random) {
  parallel_for(at.pieces(), [&](Index first, Index last) {
    const Scores<T> weights(at), ds(at);
    std::optional<Scores<T>> kept;
    if (dropout > 0) kept.emplace(at);
    for (Index p = first; p < last; ++p) {
      const Head<T> head(at, p);
      for_each_block(at, p, [&](const QueryBlock& block) {
        backward_block(at, head, block, b, dropout, random, weights.of(block),
                       (kept ? *kept : weights).of(block), ds.of(block));
      });
    }
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
        const Head<T> head(at, p);
        T* row = weights + p * at.queries * at.keys;
        gemm(at.queries, at.keys, at.head_width(), static_cast<T>(at.scale),
             head.of_queries(from_q, 0), head.of_keys(from_k, true), T{0}, Matrix<T>{row, at.keys});
        for (Index t = 0; t < at.queries; ++t, row += at.keys)
          kernels::softmax_row(row, row, at.visible(at.length(p), t), at.keys);
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
  Tensor normalisers = Tensor::empty({at.batch, at.heads, 2, at.queries}, q.dtype());
  const Tensor y = make(q.shape(), q.dtype(), [&]<class T>(T* to) {
    forward(at, numbers(q, to), numbers(k, to), numbers(v, to), dropout, random, to,
            normalisers.mutable_data<T>().data());
  });
  return record(
      "attention", y, {q, k, v},
      [=, q = q.detach(), k = k.detach(), v = v.detach()](const Tensor& dy,
                                                          InputGradients& inputs) {
        Tensor dq = inputs.in_place_of(q);
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
