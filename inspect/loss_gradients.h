#pragma once

#include <string>
#include <utility>
#include <vector>

#include "inspect/labelled_text.h"

namespace qkv {

/// How much a model's loss on a text depends on each word and each parameter.
struct LossGradients {
  double loss;                ///< -log of the answer's probability; of a written text the mean
  std::vector<double> words;  ///< norm of the loss's gradient by each word's static vector
  /// The part of each word's static vector in lowering the loss, to first order: minus its product
  /// with its gradient ("gradient × input", Shrikumar et al. 2016).
  std::vector<double> contributions;
  std::vector<double> inputs;  ///< the same of the tokens of a written text that the decoder reads
  std::vector<std::pair<std::string, Tensor>> parameters;  ///< gradients by path
};

/// The loss of a text's answer, a scalar, in a pass with a hook. The answer is the text's label or
/// answer or, where it has none, what the model itself prefers; of a sentence with a written text
/// the tokens of that. Throws UserError when the model has no answers to choose from, and for a
/// label that it does not know.
Tensor answer_loss(const LoadedModel& trained, const LabelledText& text, const Hook& hook);

/// The gradients of `answer_loss`. Throws as it does.
LossGradients loss_gradients(const LoadedModel& trained, const LabelledText& text);

/// The mean over texts of the words' norms, by how many words they stand before the word that is
/// asked about (after it: negative), and the mean of the parameters' gradients.
struct MeanGradients {
  struct AtDistance {
    Index distance = 0;
    Index texts = 0;  ///< that have a word there
    double norm = 0;  ///< mean
  };
  double loss = 0;
  std::vector<AtDistance> distances;  ///< rising
  std::vector<std::pair<std::string, Tensor>> parameters;
};

/// Throws as `loss_gradients`; `texts` must not be empty.
MeanGradients mean_gradients(const LoadedModel& trained, const std::vector<LabelledText>& texts,
                             ReadCallback& callback);

}  // namespace qkv
