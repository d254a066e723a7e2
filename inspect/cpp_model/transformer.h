#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "inspect/cpp_model/layers.h"

namespace qkv_model {

/// Keys and values of the tokens that an attention layer has read.
struct KeysValues {
  Matrix keys, values;
};

/// softmax(q k^T / sqrt(d_k)) v by head, between projections that the kind of attention has or has
/// not.
struct Attention {
  Attention(const std::string& path, bool reads_itself, bool looks_back)
      : w_q(path + ".w_q"),
        w_k(path + ".w_k"),
        w_v(path + ".w_v"),
        w_o(path + ".w_o"),
        distances(weights_of(path + ".positions.weight")),
        rotates(description().rotary && reads_itself),
        causal(looks_back),
        heads(w_o ? description().heads : 1),
        head_width(description().width / heads) {
    if (description().scale) scale = 1 / std::sqrt(static_cast<double>(head_width));
    if (w_o && !w_q) scale = 0;
  }

  /// Adds the keys and values of `source` to those that are known.
  void read(const Matrix& source, KeysValues& known) const {
    const std::size_t before = known.keys.rows();
    append(rotated(w_k ? w_k(source) : source, before), known.keys);
    append(w_v ? w_v(source) : source, known.values);
  }

  /// Mixes the known values for the queries x, the first of which is at position `first`.
  Matrix operator()(const Matrix& x, std::size_t first, const KeysValues& known) const {
    const Matrix q = rotated(w_q ? w_q(x) : x, first);
    Matrix mixed(x.rows(), description().width);
    for (std::size_t t = 0; t < x.rows(); ++t)
      for (std::size_t head = 0; head < heads; ++head)
        mix(q.row(t), first + t, head, known, mixed.row(t) + head * head_width);
    return w_o ? w_o(mixed) : mixed;
  }

  Linear w_q, w_k, w_v, w_o;
  Weights distances;  ///< a bias of scores for each distance, clipped, and head
  bool rotates, causal;
  std::size_t heads, head_width;
  double scale = 1;

 private:
  static void append(const Matrix& rows, Matrix& to) {
    to.width = rows.width;
    to.values.insert(to.values.end(), rows.values.begin(), rows.values.end());
  }

  /// Where a query's head begins in keys or values, whose heads several of queries may share.
  std::size_t begin_of(std::size_t head, const Matrix& shared) const {
    return head * (shared.width / head_width) / heads * head_width;
  }

  void mix(const double* query, std::size_t position, std::size_t head, const KeysValues& known,
           double* to) const {
    const std::size_t count = causal ? position + 1 : known.keys.rows();
    Vector weights(count);
    for (std::size_t key = 0; key < count; ++key)
      weights[key] = scale * dot(query + head * head_width,
                                 known.keys.row(key) + begin_of(head, known.keys), head_width) +
                     bias(position, key, head);
    weights = softmax(std::move(weights));
    for (std::size_t key = 0; key < count; ++key) {
      const double* const value = known.values.row(key) + begin_of(head, known.values);
      for (std::size_t i = 0; i < head_width; ++i) to[i] += weights[key] * value[i];
    }
  }

  double bias(std::size_t query, std::size_t key, std::size_t head) const {
    if (!distances) return 0;
    const std::size_t longest = (distances.rows - 1) / 2;
    const std::size_t row = key < query ? longest - std::min(longest, query - key)
                                        : longest + std::min(longest, key - query);
    return distances.row(row)[head];
  }

  /// Elements i and i + half of each head as a complex number, rotated by position / 10000^(i /
  /// half).
  Matrix rotated(Matrix x, std::size_t first) const {
    if (!rotates) return x;
    const std::size_t half = head_width / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const double rate = std::pow(10000.0, static_cast<double>(i) / static_cast<double>(half));
      for (std::size_t t = 0; t < x.rows(); ++t) {
        const double angle = static_cast<double>(first + t) / rate;
        const double cosine = std::cos(angle), sine = std::sin(angle);
        for (double* head = x.row(t); head < x.row(t) + x.width; head += head_width) {
          const double a = head[i], b = head[i + half];
          head[i] = a * cosine - b * sine;
          head[i + half] = b * cosine + a * sine;
        }
      }
    }
    return x;
  }
};

/// Self-attention, cross-attention where the parameters have it, and a feed-forward network, each
/// with a residual connection; attention alone where it has no parameters.
struct Block {
  struct Cache {
    KeysValues self, cross;
  };

  Block(const std::string& path, bool causal)
      : attention(path + ".attention", true, causal),
        cross_attention(path + ".cross_attention", false, false),
        norm_1(path + ".norm_1"),
        norm_cross(path + ".norm_cross"),
        norm_2(path + ".norm_2"),
        feed_forward(path + ".feed_forward") {}

  /// `encoded` is what a decoder reads besides: the encoder's output.
  Matrix operator()(Matrix x, std::size_t first, const Matrix& encoded, Cache& cache) const {
    const auto attend = [&](const Matrix& h) {
      attention.read(h, cache.self);
      return attention(h, first, cache.self);
    };
    x = attention.w_o ? with_residual(x, norm_1, attend) : attend(x);
    if (cross_attention.w_o)
      x = with_residual(x, norm_cross, [&](const Matrix& h) {
        if (cache.cross.keys.values.empty()) cross_attention.read(encoded, cache.cross);
        return cross_attention(h, first, cache.cross);
      });
    return feed_forward ? with_residual(x, norm_2, feed_forward) : x;
  }

  Attention attention, cross_attention;
  LayerNorm norm_1, norm_cross, norm_2;
  FeedForward feed_forward;

 private:
  template <class Sublayer>
  static Matrix with_residual(const Matrix& x, const LayerNorm& norm, const Sublayer& sublayer) {
    if (!norm) return sum_of(x, sublayer(x));
    if (description().norm_last) return norm(sum_of(x, sublayer(x)));
    return sum_of(x, sublayer(norm(x)));
  }
};

/// Blocks, and a norm at the end where the blocks begin with theirs.
struct Stack {
  Stack(const std::string& path, bool causal) : norm(path + ".norm") {
    for (std::size_t i = 0; i < description().layers; ++i)
      blocks.emplace_back(path + ".layers." + std::to_string(i), causal);
  }

  std::vector<Block> blocks;
  LayerNorm norm;
};

class Transformer {
 public:
  /// Keys and values of the tokens that a decoder has read.
  struct Cache {
    std::size_t length = 0;
    std::vector<Block::Cache> blocks = {};
  };

  /// One vector for each token, [time, width]; a decoder continues what is in the cache.
  Matrix operator()(const Ids& ids, Cache& cache) const {
    return through(description().causal ? decoder_ : encoder_, ids, {}, cache);
  }
  Matrix operator()(const Ids& ids) const {
    Cache cache;
    return (*this)(ids, cache);
  }
  /// One vector for each output token, given the encoder's output.
  Matrix decoded(const Ids& ids, const Matrix& encoded, Cache& cache) const {
    return through(decoder_, ids, encoded, cache);
  }
  /// One vector for the text, from those of its tokens.
  Matrix sentence(const Matrix& x) const {
    if (!pooler_) return mean_of(x);
    Matrix pooled = pooler_(x.one_row(0));
    for (double& v : pooled.values) v = std::tanh(v);
    return pooled;
  }

 private:
  Matrix input(const Ids& ids, std::size_t first) const {
    Matrix x = embedded(ids);
    for (std::size_t t = 0; t < x.rows(); ++t)
      for (std::size_t i = 0; i < x.width; ++i) {
        double& v = x.row(t)[i];
        if (token_types_) v += token_types_.values[i];
        if (positions_) v += positions_.row(first + t)[i];
        if (!description().sinusoidal) continue;
        const double exponent = static_cast<double>(i - i % 2) / static_cast<double>(x.width);
        const double angle = static_cast<double>(first + t) / std::pow(10000.0, exponent);
        v += i % 2 ? std::cos(angle) : std::sin(angle);
      }
    return input_norm_ ? input_norm_(std::move(x)) : x;
  }

  Matrix through(const Stack& stack, const Ids& ids, const Matrix& encoded, Cache& cache) const {
    Matrix x = input(ids, cache.length);
    cache.blocks.resize(stack.blocks.size());
    for (std::size_t i = 0; i < stack.blocks.size(); ++i)
      x = stack.blocks[i](std::move(x), cache.length, encoded, cache.blocks[i]);
    cache.length += ids.size();
    return stack.norm ? stack.norm(std::move(x)) : x;
  }

  Stack encoder_{"encoder", false}, decoder_{"decoder", true};
  Weights token_types_ = weights_of("token_types.weight"),
          positions_ = weights_of("positions.weight");
  LayerNorm input_norm_{"input_norm"};
  Linear pooler_{"pooler"};
};

}  // namespace qkv_model
