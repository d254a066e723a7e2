#pragma once

#include <filesystem>

#include "core/parameter.h"
#include "datasets/vocabulary.h"

namespace qkv {

/// Copies the vectors of a word2vec or GloVe text file into the rows of `table` [V, D]: lines `word
/// value...`, in word2vec files after a line `words width`. Words that are not in the file keep
/// their rows; of duplicates the first counts. Throws UserError naming file and line when a line
/// does not have D finite values, and when the file has none of the vocabulary's words.
void load_vectors(const std::filesystem::path& file, const Vocabulary& vocabulary,
                  Parameter& table);

/// A table [V, D] in the same format, for `load_vectors` and other programs: word2vec text without
/// the rows of padding and of the unknown word, and without tokens that contain white space.
std::string word2vec_text(const Vocabulary& vocabulary, const Tensor& table);

}  // namespace qkv
