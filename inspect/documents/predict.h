#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspect/documents/json.h"

namespace qkv::documents {

/// The words of a text, without punctuation marks and masks.
struct TextWords {
  Index count = 0;
  std::vector<std::string> unknown = {};  ///< those that are not in the vocabulary, in their order
};
TextWords words_of(const std::string& text, const Tokenizer& tokenizer);

/// An element of "predictions": {"text", "label" or "output", "probability", "index", "line",
/// "probabilities", "logits", "ids", "words", "unknown_words"}, as far as there are such. `line` is
/// that of the text in its file; the prediction is about `sentence`.
Json prediction(const Prediction& prediction, const Sentence& sentence, const TextWords& words,
                std::optional<std::size_t> line = {});

}  // namespace qkv::documents
