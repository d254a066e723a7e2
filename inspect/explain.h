#pragma once

#include <string>
#include <vector>

#include "inspect/intervention.h"

namespace qkv {

/// The results of one attention head for a sentence. Each matrix has a row for each query.
struct HeadSteps {
  Tensor q, k, v;  ///< [T, d_k]
  Tensor scores;   ///< q k^T, [Tq, Tk]
  Tensor scaled;   ///< scores times the scale, plus the bias where there is one
  Tensor weights;  ///< softmax of the scaled scores that the mask lets through
  Tensor mixed;    ///< weights v, [T, d_k]
};

/// The results of an attention module for a sentence.
struct AttentionSteps {
  std::string path;     ///< "encoder.layers.0.attention"
  bool cross = false;   ///< keys and values of another sequence
  double scale;         ///< factor of the scores
  bool biased = false;  ///< a bias is added to the scaled scores, such as that of positions
  Tensor mask;          ///< [Tq, Tk], 1 where the key is visible to the query
  std::vector<HeadSteps> heads;
};

/// The forward pass of a sentence up to the scores of one word, or of one token that an
/// encoder-decoder writes.
struct Explanation {
  ModelOptions model;  ///< of the stack that gives the scores
  Sentence sentence;
  Index index;           ///< the word, or the input of the decoder
  Recorder recorder;     ///< every intermediate result, in the order of computing
  Scores scores;         ///< of the answers
  Tensor probabilities;  ///< softmax of the logits; empty without choices
};

/// The intermediate results of a sentence's forward pass, in which some activations are replaced.
Recorder recorded(const LoadedModel& trained, const Sentence& sentence,
                  const std::vector<Replacement>& replaced = {});

/// The values are the model's own: a recorder keeps them during the forward pass.
Explanation explain(const LoadedModel& trained, const Sentence& sentence, Index index,
                    const std::vector<Replacement>& replaced = {});

/// The path of what the module of a record records as `name`.
std::string beside(const Recorder::Record& record, std::string_view name);

/// The steps of each attention module, in the order of computing.
std::vector<AttentionSteps> attention_steps(const Recorder& recorder);

}  // namespace qkv
