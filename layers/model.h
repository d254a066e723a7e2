#pragma once

#include <memory>

#include "layers/context.h"
#include "layers/options.h"

namespace qkv {

/// From token ids to one vector a token: static vectors made contextual, as far as the kind of
/// model does so.
struct Model : Module {
  /// ids [B, T], of which the first lengths[b] of sequence b count -> [B, T, D]. No lengths: all
  /// count. Records "static", the "input" of the first layer where it differs, and "contextual".
  virtual Tensor operator()(const Indices& ids, const Indices& lengths, Context& context) const = 0;
  /// The table of static vectors [V, D].
  virtual const Parameter& embedding_table() const = 0;
  /// For an encoder-decoder, whose call operator encodes: one vector for each token of the output
  /// so far, ids [B, T], from what was encoded, memory [B, Tm, D] -> [B, T, D]. Throws ValueError
  /// for other kinds of models.
  virtual Tensor decode(const Indices& ids, const Tensor& memory, const Indices& memory_lengths,
                        Context& context) const;
  /// One vector for each sentence from those of its tokens, x [B, T, D] -> [B, D]: their mean,
  /// unless the kind of model has its own way.
  virtual Tensor sentence(const Tensor& x, const Indices& lengths) const {
    return masked_mean(x, lengths);
  }
};

/// Throws ValueError when the options contradict each other. Does not read `embedding_file`: load
/// the vectors into the embedding table.
std::unique_ptr<Model> make_model(const ModelOptions& options, Index vocabulary, Random& random);

}  // namespace qkv
