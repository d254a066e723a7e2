#include "inspect/documents/predict.h"

#include <algorithm>
#include <iterator>

#include "datasets/text.h"

namespace qkv::documents {
namespace {

/// Names for choices, of which several may be the same word of a sentence: "the (4)".
std::vector<std::string> names_of(const std::vector<std::string>& choices) {
  std::map<std::string_view, Index> counts;
  for (const std::string& choice : choices) ++counts[choice];
  std::vector<std::string> names;
  for (std::size_t i = 0; i < choices.size(); ++i)
    names.push_back(counts[choices[i]] > 1 ? fmt::format("{} ({})", choices[i], i) : choices[i]);
  return names;
}

}  // namespace

TextWords words_of(const std::string& text, const Tokenizer& tokenizer) {
  const Cutting cutting{TokenizerKind::word, tokenizer.cutting().lower_case};
  std::vector<std::string> pieces = pieces_of(text, cutting);
  const std::vector<std::string> mask = pieces_of(mask_text, cutting);
  for (Index at = 0; (at = find_phrase(pieces, mask, at)) < std::ssize(pieces);) {
    const auto first = pieces.begin() + static_cast<std::ptrdiff_t>(at);
    pieces.erase(first, first + std::ssize(mask));
  }
  std::erase_if(pieces, is_one_mark);
  TextWords words{std::ssize(pieces)};
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  std::ranges::copy_if(pieces, std::back_inserter(words.unknown), [&](const std::string& word) {
    std::vector<std::int32_t> ids;
    tokenizer.encode(word, ids);
    return std::ranges::any_of(ids, [&](std::int32_t id) { return vocabulary.is_unknown(id); });
  });
  return words;
}

Json prediction(const Prediction& prediction, const Sentence& sentence, const TextWords& words,
                std::optional<std::size_t> line) {
  Json json = object({{"text", prediction.text},
                      {prediction.is_output ? "output" : "label", prediction.label},
                      {"probability", prediction.probability}});
  if (prediction.index) json["index"] = *prediction.index;
  if (line) json["line"] = *line;
  const auto names = names_of(prediction.choices);
  for (std::size_t i = 0; i < names.size(); ++i)
    json["probabilities"][names[i]] = prediction.probabilities[i];
  if (!names.empty()) json["logits"] = prediction.logits;
  json["ids"] = sentence.ids;
  json["words"] = words.count;
  json["unknown_words"] = words.unknown;
  return json;
}

}  // namespace qkv::documents
