#pragma once

#include <string>

#include "core/shape.h"

namespace qkv {

enum class ModelKind {
  encoder,
  decoder,
  encoder_decoder,
  recurrent,
  convolution,
  fixed_length,
  static_embedding
};

/// Where the attention weights come from: learned queries and keys, the inputs' own dot products
/// (softmax(X X^T / sqrt(D)) X with `scale`, as tutorials build it first), or none, so that every
/// word counts the same. An encoder-decoder's decoder is learned where the encoder is
/// parameter-free.
enum class AttentionKind { learned, parameter_free, uniform };

/// Added to the embedding as fixed waves (sinusoidal) or as a table (learned), or turned into the
/// queries and keys (rotary).
enum class PositionKind { sinusoidal, learned, rotary, none };

/// Whether a word's static vector is learned, or 1 at the word's number and 0 elsewhere.
enum class EmbeddingKind { learned, one_hot };

/// Whether a block normalises before each of its parts or after.
enum class NormKind { pre, post };

/// How a recurrent network goes from one state to the next.
enum class CellKind { rnn, gru, lstm };

/// What a model is built from; the configuration file's [model].
struct ModelOptions {
  ModelKind kind = ModelKind::encoder;
  Index width = 32;    ///< numbers in a word's vector
  Index layers = 1;    ///< layers on top of each other
  Index heads = 4;     ///< attention heads a block; divides width
  Index kv_heads = 0;  ///< heads of keys and values, shared by those of queries; 0: as many
  AttentionKind attention = AttentionKind::learned;
  bool scale = true;  ///< divide scores by sqrt(width / heads)
  PositionKind position = PositionKind::sinusoidal;
  Index feed_forward = 128;  ///< hidden width of a block's feed-forward part; 0: none
  NormKind norm = NormKind::pre;
  bool bias = true;   ///< linear layers and norms add one
  bool tied = false;  ///< the output layer's weight is the embedding table
  EmbeddingKind embedding = EmbeddingKind::learned;
  std::string embedding_file = {};  ///< word2vec or GloVe text that the static vectors start from
  bool freeze_embedding = false;    ///< the static vectors stay as they are
  CellKind cell = CellKind::lstm;   ///< of a recurrent model
  bool bidirectional = false;  ///< a recurrent model reads backwards, too: half of the width each
  double dropout = 0.0;        ///< in [0, 1)
  Index max_length = 256;      ///< longest sentence in tokens

  friend bool operator==(const ModelOptions&, const ModelOptions&) = default;
};

}  // namespace qkv
