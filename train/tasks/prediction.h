#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"

namespace qkv {

/// The prediction of a model for a text.
struct Prediction {
  std::string text;
  std::optional<Index> index;  ///< the word it is about, counted from 0; none: the whole text
  std::string label;           ///< a class, a word, or the generated text
  double probability;
  bool is_output = false;                 ///< whether the label is a generated text
  std::vector<std::string> choices = {};  ///< of which the label is one; none for generated text
  std::vector<double> logits = {}, probabilities = {};  ///< of each choice
};

/// The predictions of a model for one of many texts, or why there is none.
struct TextPredictions {
  std::vector<Prediction> predictions = {};
  std::vector<std::string> tokens = {};  ///< of the text
  std::vector<std::int32_t> ids = {};    ///< of the tokens
  std::string error = {};                ///< empty where there are predictions
};

}  // namespace qkv
