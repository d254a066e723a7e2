#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "inspect/cpp_model/sentence.h"
#include "inspect/cpp_model/transformer.h"

namespace qkv_model {

/// What the model writes for a text, token by token the most probable one, and the product of their
/// probabilities.
template <class Tokenizer>
Prediction translation_of(std::string_view text) {
  const Transformer& model = loaded<Transformer>();
  const Matrix encoded = model(sentence_of<Tokenizer>(text).ids);
  Transformer::Cache cache;
  Prediction answer;
  answer.probability = 1;
  Ids written;
  int last = id_of("<bos>");
  while (cache.length < description().max_length) {
    const Vector probabilities = softmax(logits_of(model.decoded({last}, encoded, cache)).values);
    const auto best = std::max_element(probabilities.begin(), probabilities.end());
    answer.probability *= *best;
    last = static_cast<int>(best - probabilities.begin());
    if (last == id_of("<eos>")) break;
    written.push_back(last);
  }
  answer.label = text_of<Tokenizer>(written);
  if (answer.label.substr(0, 1) == " ") answer.label.erase(0, 1);
  return answer;
}

}  // namespace qkv_model
