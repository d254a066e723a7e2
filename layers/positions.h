#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/ops.h"
#include "core/parameter.h"
#include "layers/options.h"

namespace qkv {

/// Positional encoding that is added to the embeddings, once in a model.
struct InputPositions : Module {
  /// The encoding of positions [first, first + time): [time, D].
  virtual Tensor encoding(Index first, Index time, DType dtype) const = 0;
  void visit(ModuleVisitor&) override {}
};

/// Positional encoding inside self-attention, in each layer. A kind overrides the hook it needs.
struct AttentionPositions : Module {
  /// Queries or keys x [B, T, H d_k] at positions [first, first + T) -> the same shape.
  virtual Tensor query_key(const Tensor& x, [[maybe_unused]] Index heads,
                           [[maybe_unused]] Index first) const {
    return x;
  }
  /// The formula of `query_key` for queries or keys called `x`.
  virtual std::string formula(std::string_view x) const { return std::string(x); }
  /// Added to the scaled scores of queries at positions [first, first + Tq) and keys at [0, Tk), by
  /// their distances alone; broadcasts to [B, H, Tq, Tk], empty: nothing.
  virtual Tensor score_bias([[maybe_unused]] Index heads, [[maybe_unused]] Index first,
                            [[maybe_unused]] Index queries, [[maybe_unused]] Index keys,
                            [[maybe_unused]] DType dtype) const {
    return {};
  }
  void visit(ModuleVisitor&) override {}
};

/// Distances from a query to its keys, before it negative.
struct Window {
  Index first = std::numeric_limits<Index>::min(), last = std::numeric_limits<Index>::max();

  bool has(Index distance) const { return first <= distance && distance <= last; }
};

/// Where a head of PositionKind::windows attends at its start. The widths double, as the slopes of
/// ALiBi do (Press et al. 2022): the first head attends to all keys, the others to the query and
/// the 1, 2, 4, ... keys before it and after it, in turn, at most max_distance - 1.
Window window_of(Index head, const ModelOptions& options);

/// A kind of positional encoding: where it acts. A null function acts nowhere.
struct PositionRow {
  PositionKind value;
  std::string_view name, help;
  std::unique_ptr<InputPositions> (*input)(const ModelOptions& options);
  std::unique_ptr<AttentionPositions> (*attention)(const ModelOptions& options);
};
std::span<const PositionRow> position_kinds();

/// Whether the options' kind acts on their attention: relative positions are trained, which only
/// learned attention is, and uniform attention has no use for rotated queries.
bool acts_in_attention(const ModelOptions& options);

/// The options' kind, where it acts on the embeddings, else null.
std::unique_ptr<InputPositions> make_input_positions(const ModelOptions& options);
/// The options' kind, where it acts in self-attention layers, else null.
std::unique_ptr<AttentionPositions> make_attention_positions(const ModelOptions& options);

/// Sines and cosines of positions [first, first + time), [time, width]: PE(t, 2i) =
/// sin(t / 10000^(2i/D)), PE(t, 2i+1) = cos of the same (Vaswani et al. 2017, 3.5).
Tensor sinusoidal_positions(Index first, Index time, Index width, DType dtype = DType::float32);

}  // namespace qkv
