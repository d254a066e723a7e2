#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/explain.h"
#include "inspect/principal_components.h"

namespace qkv {

/// A word in a sentence, before and after the model has read the sentence.
struct WordVector {
  std::string label;                         ///< of the sentence; may be empty
  std::string text;                          ///< the sentence
  std::shared_ptr<const Sentence> sentence;  ///< of all its words
  Index index;                               ///< the word's position; -1: the mean of all words
  std::vector<double> static_vector, contextual;

  const std::string& word() const { return sentence->words[static_cast<std::size_t>(index)]; }
};

/// The vectors of all words of a sentence; the contextual ones after layer `layer`, counted from 0,
/// or with -1 after the last, in a pass in which some activations are replaced. Throws UserError
/// when there is no such layer.
std::vector<WordVector> word_vectors(const LoadedModel& trained, const Sentence& sentence,
                                     Index layer, const std::vector<Replacement>& replaced = {});
/// The vectors of one word after the last layer; of word -1 the means over all words.
WordVector word_vector(const LoadedModel& trained, const Sentence& sentence, Index index,
                       const std::vector<Replacement>& replaced = {});

/// a . b / (|a| |b|); exactly 1 for equal vectors.
double cosine(const std::vector<double>& a, const std::vector<double>& b);

/// Mean cosines of pairs of words; nothing where there is no such pair.
struct LabelCosines {
  std::optional<double> same, different;  ///< by whether their labels are equal
};
LabelCosines label_cosines(const std::vector<WordVector>& words,
                           std::vector<double> WordVector::*vector);

struct Neighbour {
  double cosine;
  const WordVector* word;
};
/// The `count` words whose vector, static or contextual, is nearest to that of `word`; none twice
/// with the same sentence and position, static ones once for each word. The word itself is left
/// out.
std::vector<Neighbour> neighbours(const WordVector& word, const std::vector<WordVector>& words,
                                  std::vector<double> WordVector::*vector, std::size_t count);

/// A word of the vocabulary and the cosine of its static vector with another's.
struct NearWord {
  std::string word;
  double cosine;
};
/// The `count` words of the vocabulary whose static vectors are nearest to that of token `id`,
/// which is left out.
std::vector<NearWord> nearest_words(const LoadedModel& trained, std::int32_t id, std::size_t count);

/// The vectors of words as rows, [N, D], float64.
Tensor stacked(const std::vector<WordVector>& words, std::vector<double> WordVector::*vector);

/// The first line of a projector's metadata.
inline constexpr std::string_view projector_metadata_head = "word\tvector\tlabel\tsentence\n";

/// Tab-separated values for the TensorBoard embedding projector: for each word a line with its
/// static vector and one with its contextual vector, and lines that describe them.
struct ProjectorTables {
  std::string tensors;
  std::string metadata;  ///< begins with `projector_metadata_head`
};
ProjectorTables projector_tables(const std::vector<WordVector>& words);

/// Points [N, D] along the first two principal components; 0 along one that is missing.
std::vector<std::array<double, 2>> in_plane(const PrincipalComponents& components,
                                            const Tensor& points);

}  // namespace qkv
