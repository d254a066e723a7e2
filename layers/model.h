#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layers/context.h"
#include "layers/embedding.h"
#include "layers/options.h"

namespace qkv {

/// From token ids to one contextual vector a token.
struct Model : Module, FormulaSource {
  /// ids [B, T], of which the first lengths[b] of sequence b are tokens and the rest padding ->
  /// [B, T, D]. No lengths: no padding. Records "static" (the embeddings), the "position" and
  /// "input" of the first layer where positions are added, and "contextual" (the result). Throws
  /// ShapeError when ids or lengths have other shapes.
  virtual Tensor operator()(const Indices& ids, const Indices& lengths, Context& context) const = 0;
  /// Evaluates: no dropout, nothing is recorded.
  Tensor operator()(const Indices& ids, const Indices& lengths = {}) const {
    Context evaluation;
    return (*this)(ids, lengths, evaluation);
  }
  /// The table of static vectors [V, D].
  const Parameter& embedding_table() const { return embedding.weight; }
  /// For an encoder-decoder, whose call operator encodes: one vector for each output token so far,
  /// ids [B, T], given the encoder output [B, Ts, D] -> [B, T, D]. Records what the call operator
  /// does, but the result as "decoded". Throws ValueError for other kinds.
  virtual Tensor decode(const Indices& ids, const Tensor& encoded, const Indices& encoded_lengths,
                        Context& context) const;
  /// One vector for each sequence from those of its tokens, x [B, T, D] -> [B, D]: their mean,
  /// unless a kind has its own way.
  virtual Tensor sentence(const Tensor& x, const Indices& lengths) const {
    return masked_mean(x, lengths);
  }
  std::vector<Row> formulas() const override;

  Embedding embedding;
  VectorsFound vectors = {};  ///< of `ModelOptions::embedding_file`

 protected:
  Model(const ModelOptions& options, Index vocabulary)
      : embedding(vocabulary, options.width, options.embedding_std) {}

  /// Checks the arguments of the call operator; returns and records the embeddings [B, T, D].
  Tensor embedded(const Indices& ids, const Indices& lengths, const Context& context) const;
  /// Records and returns the result of the call operator.
  Tensor contextual(Tensor x, const Context& context) const;
};

/// A kind of model.
struct ModelRow {
  ModelKind value;
  std::string_view name, help;
  std::unique_ptr<Model> (*make)(const ModelOptions& options, Index vocabulary);
};
std::span<const ModelRow> model_kinds();

/// A model as its options describe it, with an embedding table of `vocabulary` rows. `tokens` names
/// the rows; only `embedding_file` needs it. Throws ValueError when the options contradict each
/// other, and UserError as `load_vectors` does.
std::unique_ptr<Model> make_model(const ModelOptions& options, Index vocabulary, Random& random,
                                  std::span<const std::string> tokens = {});

}  // namespace qkv
