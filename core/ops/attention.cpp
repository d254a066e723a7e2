#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/autograd.h"
#include "core/kernels/columns.h"
#include "core/kernels/gemm.h"
#include "core/kernels/rows.h"
#include "core/kernels/scratch.h"
#include "core/ops.h"
#include "core/ops/broadcast.h"
#include "core/ops/checks.h"
#include "core/ops/create.h"
#include "core/ops/dropout.h"
#include "core/parallel.h"

namespace qkv {
namespace {

using namespace detail;
using kernels::gemm;
using kernels::Matrix;
using kernels::Scratch;

/// Sizes of one call, and the offsets of each head's matrices.
struct Layout {
  Index batch, queries, keys, width, heads;
  double scale;
  AttentionMask mask;
  Steps bias_steps;  ///< strides of [B, H, Tq, Tk] in the bias; 0 where it broadcasts

  Index head_width() const { return width / heads; }
  Index problems() const { return batch * heads; }
  Chunks chunks() const { return partition(problems(), queries * keys * head_width() / 4); }
  /// Offset of head `problem % heads` of sequence `problem / heads` in an array [B, rows, D].
  Index start(Index problem, Index rows) const {
    return problem / heads * rows * width + problem % heads * head_width();
  }
  /// Number of queries of the problems before `problem`.
  Index first_query(Index problem) const { return problem * queries; }
  /// Keys of a problem's sequence that are not padding.
  Index length(Index problem) const {
    return mask.key_lengths.size()
               ? mask.key_lengths.data()[static_cast<std::size_t>(problem / heads)]
               : keys;
  }
  /// Offset of the bias of query `t` of a problem.
  Index bias_start(Index problem, Index t) const {
    return problem / heads * bias_steps[0] + problem % heads * bias_steps[1] + t * bias_steps[2];
  }
  /// Query `t` attends to the first so many of `length` keys, never fewer than query `t - 1`.
  Index visible(Index length, Index t) const {
    return mask.causal ? std::clamp<Index>(t + 1 + keys - queries, 0, length) : length;
  }
};

/// Queries whose scores are computed together, and only for keys that one of them attends to: RAM
/// grows with the number of keys, not with its square, and most of what a causal mask hides is
/// skipped (as in Dao 2023, "FlashAttention-2", but with whole rows). A block has queries [begin,
/// end) of one problem (a head of a sequence), or all queries of several short ones, and consists
/// of tiles of at most `tile_queries` of one problem. Scores and weights have a row for each key
/// and a column for each query:
///
///                    tile 0   tile 1
///     key 0          x x x x  x x x x
///     key 1            x x x  x x x x
///     ...              . . .  x x x x
///     key n - 1                     x
///
/// Under a causal mask a tile attends to keys [0, keys), of which those from `first_new_key` on are
/// hidden from the tiles before it.
struct Block {
  Index problem, problems, begin, end, keys;

  Index queries() const { return end - begin; }
  Index columns() const { return problems * queries(); }
};

/// Queries [begin, end) of a problem, the first of them in column `column` of the block.
struct Tile {
  Index problem, begin, end, column, first_new_key, keys;

  Index queries() const { return end - begin; }
};

/// Two vectors, unless they are long: a product with fewer sums would wait for its additions.
template <class T>
constexpr Index tile_queries = kernels::width<T>*(kernels::vector_bytes == 64 ? 1 : 2);
template <class T>
constexpr Index block_columns = 2 * tile_queries<T>;

template <class T, class F>
void for_each_block(const Layout& at, Index first, Index last, F f) {
  const Index queries = std::max<Index>(at.queries, 1);
  const Index together = queries > tile_queries<T> ? 1 : block_columns<T> / queries;
  for (Index p = first; p < last; p += together) {
    const Index problems = std::min(together, last - p);
    Index longest = 0;
    for (Index i = 0; i < problems; ++i) longest = std::max(longest, at.length(p + i));
    for (Index t = 0; t < at.queries; t += block_columns<T>) {
      const Index end = std::min(t + block_columns<T>, at.queries);
      f(Block{p, problems, t, end, at.visible(longest, end - 1)});
    }
  }
}

template <class T, class F>
void for_each_tile(const Layout& at, const Block& block, F f) {
  Index column = 0;
  for (Index p = block.problem; p < block.problem + block.problems; ++p) {
    Index first_new_key = 0;
    for (Index t = block.begin; t < block.end; t += tile_queries<T>) {
      const Index end = std::min(t + tile_queries<T>, block.end);
      const Tile tile{p, t, end, column, first_new_key, at.visible(at.length(p), end - 1)};
      f(tile);
      column += tile.queries();
      first_new_key = tile.keys;
    }
  }
}

Layout checked_layout(const Tensor& q, const Tensor& k, const AttentionMask& mask,
                      const AttentionOptions& options) {
  require_same_dtype("attention", q, k);
  require(q.rank() == 3 && k.rank() == 3 && q.dim(0) == k.dim(0) && q.dim(2) == k.dim(2),
          "[attention] needs q (B, Tq, D) and k (B, Tk, D), got {} and {}", q.shape(), k.shape());
  require<ValueError>(options.heads >= 1 && q.dim(2) % options.heads == 0,
                      "[attention] {} heads do not divide the width {}", options.heads, q.dim(2));
  require<ValueError>(std::isfinite(options.scale), "[attention] scale must be finite, got {}",
                      options.scale);
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
  Layout at{q.dim(0), q.dim(1), k.dim(1), q.dim(2), options.heads, options.scale, mask, {}};
  if (mask.bias) {
    require_same_dtype("attention", q, mask.bias);
    const Shape scores{at.batch, at.heads, at.queries, at.keys};
    require(broadcast("attention", mask.bias.shape(), scores) == scores,
            "[attention] the bias {} does not broadcast to the scores {}", mask.bias.shape(),
            scores);
    at.mask.bias = mask.bias.detach();
    at.bias_steps = broadcast_steps(mask.bias.shape(), scores);
  }
  return at;
}

/// The matrices of one head in q, k, v and tensors of their shapes.
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

/// Scratch buffer of a block: a matrix with a row for each key and a column for each query.
template <class T>
class Scores {
 public:
  explicit Scores(const Layout& at) : data_(at.keys * block_columns<T>) {}

  T* data() const { return data_.data(); }
  Matrix<T> of(const Tile& tile) const { return {data() + tile.column, block_columns<T>}; }
  /// The transpose, with a row for each query.
  Matrix<const T> transposed(const Tile& tile) const {
    return {data() + tile.column, block_columns<T>, true};
  }

 private:
  Scratch<T> data_;
};

/// The number of keys that each query of a block attends to, and its softmax normaliser.
template <class T>
struct Statistics {
  alignas(64) std::array<T, block_columns<T>> lengths{}, max, sum;

  Statistics(const Layout& at, const Block& block) {
    auto* length = lengths.data();
    for (Index p = block.problem; p < block.problem + block.problems; ++p)
      for (Index t = block.begin; t < block.end; ++t)
        *length++ = static_cast<T>(at.visible(at.length(p), t));
  }
  kernels::Columns<T> columns(const Block& block, const Scores<T>& scores) const {
    return {scores.data(), block.keys, block_columns<T>, block.columns(), lengths.data()};
  }
};

/// Applies dropout to the weights of a tile.
template <class T>
void drop_weights(const Layout& at, const Tile& tile, const Matrix<T>& weights,
                  MatrixDropout<T>& dropout) {
  for (Index key = 0; key < tile.keys; ++key)
    dropout.apply(weights.data + key * weights.stride, tile.queries(), tile.problem, key,
                  tile.begin, at.length(tile.problem));
}

template <class T>
void multiply(T* x, const T* by, Index count) {
  kernels::map_row(count, x, [=](auto at) { return at(x) * at(by); });
}

/// factor K Q^T for the queries of a tile, or the same of V and dY.
template <class T>
void scores_of(const Layout& at, const Tile& tile, double factor, const T* keys, const T* queries,
               const Scores<T>& scores) {
  const Head<T> head(at, tile.problem);
  gemm(tile.keys, tile.queries(), at.head_width(), static_cast<T>(factor), head.of_keys(keys),
       head.of_queries(queries, tile.begin, true), T{0}, scores.of(tile));
}

/// Adds the bias to the scores of a tile.
template <class T>
void add_bias(const Layout& at, const Tile& tile, const T* bias, const Matrix<T>& scores) {
  bias += at.bias_start(tile.problem, tile.begin);
  const Index queries = tile.queries(), query_step = at.bias_steps[2], key_step = at.bias_steps[3];
  for (Index key = 0; key < tile.keys; ++key) {
    T* row = scores.data + key * scores.stride;
    for (Index i = 0; i < queries; ++i) row[i] += bias[key * key_step + i * query_step];
  }
}

/// Writes the gradient of a bias [B, H, Tq, Tk] for the queries of a tile and their visible keys.
template <class T>
void store_bias_gradient(const Layout& at, const Tile& tile, const Matrix<T>& ds, T* dbias) {
  for (Index t = tile.begin; t < tile.end; ++t) {
    T* row = dbias + (at.first_query(tile.problem) + t) * at.keys;
    for (Index key = 0; key < at.visible(at.length(tile.problem), t); ++key)
      row[key] = ds.data[key * ds.stride + t - tile.begin];
  }
}

/// softmax(scale Q K^T + mask) V, and the softmax normalisers: the maximum of each query of each
/// problem, then the sum of each.
template <class T>
void forward(const Layout& at, const T* q, const T* k, const T* v, const T* bias, double dropout,
             const Random& random, T* y, T* normalisers) {
  parallel_for(at.chunks(), [&](Index first, Index last) {
    const Scores<T> weights(at);
    MatrixDropout<T> mask(at.keys, at.queries, dropout, random);
    for_each_block<T>(at, first, last, [&](const Block& block) {
      for_each_tile<T>(at, block, [&](const Tile& tile) {
        scores_of(at, tile, at.scale, k, q, weights);
        if (bias) add_bias(at, tile, bias, weights.of(tile));
      });
      Statistics<T> now(at, block);
      kernels::softmax_columns(now.columns(block, weights), now.max.data(), now.sum.data());
      T* saved = normalisers + at.first_query(block.problem) + block.begin;
      std::copy_n(now.max.data(), block.columns(), saved);
      std::copy_n(now.sum.data(), block.columns(), saved + at.first_query(at.problems()));
      for_each_tile<T>(at, block, [&](const Tile& tile) {
        if (dropout > 0) drop_weights(at, tile, weights.of(tile), mask);
        const Head<T> head(at, tile.problem);
        gemm(tile.queries(), at.head_width(), tile.keys, T{1}, weights.transposed(tile),
             head.of_keys(v), T{0}, head.to_queries(y, tile.begin));
      });
    });
  });
}

/// Operands and results of backward.
template <class T>
struct Backward {
  const T *q, *k, *v, *bias, *dy, *normalisers;
  T *dq, *dk, *dv;  ///< dk and dv start at 0; dq may be q
  T* dbias;         ///< [B, H, Tq, Tk], starts at 0; null when it is not needed
};

/// Adds the gradients of one block, with S = scale Q K^T, W = softmax(S) recomputed, W' = W after
/// dropout by the mask M, and Y = W' V:
///
///     dW = M (dY V^T)    dV = W'^T dY
///     dS = W (dW - sum(dW W))    dQ = scale dS K    dK = scale dS^T Q
///
/// `weights` (W), `dropped` (M, then W'; used with dropout alone) and `ds` (dW, then dS) are
/// scratch buffers.
template <class T>
void backward_block(const Layout& at, const Block& block, const Backward<T>& b,
                    MatrixDropout<T>* dropout, const Scores<T>& weights, const Scores<T>& dropped,
                    const Scores<T>& ds) {
  const Index size = block.keys * block_columns<T>, width = at.head_width();
  const auto scale = static_cast<T>(at.scale);
  if (dropout) std::fill_n(dropped.data(), size, T{1});
  for_each_tile<T>(at, block, [&](const Tile& tile) {
    scores_of(at, tile, at.scale, b.k, b.q, weights);
    if (b.bias) add_bias(at, tile, b.bias, weights.of(tile));
    scores_of(at, tile, 1, b.v, b.dy, ds);
    if (dropout) drop_weights(at, tile, dropped.of(tile), *dropout);
  });
  if (dropout) multiply(ds.data(), dropped.data(), size);
  Statistics<T> now(at, block);
  const T* saved = b.normalisers + at.first_query(block.problem) + block.begin;
  std::copy_n(saved, block.columns(), now.max.data());
  std::copy_n(saved + at.first_query(at.problems()), block.columns(), now.sum.data());
  kernels::softmax_columns_backward(now.columns(block, weights), ds.data(), now.max.data(),
                                    now.sum.data(), b.dbias ? T{1} : scale);
  if (dropout) multiply(dropped.data(), weights.data(), size);
  const Scores<T>& applied = dropout ? dropped : weights;
  // dS is scaled before the products, which may overflow; the bias is added to scaled scores.
  if (b.dbias) {
    for_each_tile<T>(
        at, block, [&](const Tile& tile) { store_bias_gradient(at, tile, ds.of(tile), b.dbias); });
    for (T& score : std::span(ds.data(), static_cast<std::size_t>(size))) score *= scale;
  }
  for_each_tile<T>(at, block, [&](const Tile& tile) {
    const Head<T> head(at, tile.problem);
    // Keys that are hidden from the tiles before, and all queries that attend to them.
    const Index keys = tile.keys - tile.first_new_key, queries = block.end - tile.begin;
    const auto add = [&](const Scores<T>& factors, const T* from, T* to) {
      const Matrix<const T> rows{factors.of(tile).data + tile.first_new_key * block_columns<T>,
                                 block_columns<T>};
      const Matrix<T> sum = head.to_keys(to);
      gemm(keys, width, queries, T{1}, rows, head.of_queries(from, tile.begin), T{1},
           Matrix<T>{sum.data + tile.first_new_key * sum.stride, sum.stride});
    };
    add(applied, b.dy, b.dv);
    add(ds, b.q, b.dk);
  });
  for_each_tile<T>(at, block, [&](const Tile& tile) {
    const Head<T> head(at, tile.problem);
    gemm(tile.queries(), width, tile.keys, T{1}, ds.transposed(tile), head.of_keys(b.k), T{0},
         head.to_queries(b.dq, tile.begin));
  });
}

template <class T>
void backward(const Layout& at, const Backward<T>& b, double dropout, const Random& random) {
  parallel_for(at.chunks(), [&](Index first, Index last) {
    const Scores<T> weights(at), ds(at);
    std::optional<Scores<T>> dropped;
    if (dropout > 0) dropped.emplace(at);
    MatrixDropout<T> mask(at.keys, at.queries, dropout, random);
    for_each_block<T>(at, first, last, [&](const Block& block) {
      backward_block(at, block, b, dropped ? &mask : nullptr, weights, dropped ? *dropped : weights,
                     ds);
    });
  });
}

}  // namespace

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionMask& mask,
                         const AttentionOptions& options) {
  const Layout at = checked_layout(q, k, mask, options);
  return create({at.batch, at.heads, at.queries, at.keys}, q.dtype(), [&]<class T>(T* weights) {
    const T *from_q = elements(q, weights), *from_k = elements(k, weights);
    const T* bias = mask.bias ? elements(mask.bias, weights) : nullptr;
    parallel_for(at.chunks(), [&](Index begin, Index end) {
      for (Index p = begin; p < end; ++p) {
        const Head<T> head(at, p);
        T* row = weights + p * at.queries * at.keys;
        gemm(at.queries, at.keys, at.head_width(), static_cast<T>(at.scale),
             head.of_queries(from_q, 0), head.of_keys(from_k, true), T{0}, Matrix<T>{row, at.keys});
        for (Index t = 0; t < at.queries; ++t, row += at.keys) {
          const Index visible = at.visible(at.length(p), t);
          for (Index key = 0; bias && key < visible; ++key)
            row[key] += bias[at.bias_start(p, t) + key * at.bias_steps[3]];
          kernels::softmax_row(row, row, visible, at.keys);
        }
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
  Tensor normalisers = Tensor::empty({2, at.batch, at.heads, at.queries}, q.dtype());
  const Tensor y = create(q.shape(), q.dtype(), [&]<class T>(T* to) {
    forward(at, elements(q, to), elements(k, to), elements(v, to),
            mask.bias ? elements(mask.bias, to) : nullptr, dropout, random, to,
            normalisers.mutable_data<T>().data());
  });
  return record(
      "attention", y, {q, k, v, mask.bias},
      [=, q = q.detach(), k = k.detach(), v = v.detach()](const Tensor& dy,
                                                          InputGradients& inputs) {
        Tensor dq = inputs.donated_or_new(q);
        Tensor dk = Tensor::zeros(k.shape(), k.dtype());
        Tensor dv = Tensor::zeros(k.shape(), k.dtype());
        Tensor dbias;
        if (inputs.needs(3))
          dbias = Tensor::zeros({at.batch, at.heads, at.queries, at.keys}, q.dtype());
        dispatch(dy.dtype(), [&]<class T>() {
          const auto data = [](const Tensor& x) { return x ? x.data<T>().data() : nullptr; };
          const auto to = [](Tensor& x) { return x ? x.shared_mutable_data<T>().data() : nullptr; };
          backward<T>(at,
                      {data(q), data(k), data(v), data(at.mask.bias), data(dy), data(normalisers),
                       to(dq), to(dk), to(dv), to(dbias)},
                      dropout, random);
        });
        inputs.add(0, std::move(dq));
        inputs.add(1, std::move(dk));
        inputs.add(2, std::move(dv));
        inputs.add(3, [&] { return sum_to(dbias, at.mask.bias.shape()); });
      });
}

}  // namespace qkv
