#pragma once

#include <filesystem>

#include "core/parameter.h"
#include "datasets/vocabulary.h"

namespace qkv {

/// Puts the vectors of a word2vec or GloVe text file into the rows of `table` [V, D]: lines `word
/// number...`, with word2vec after a line `words width`. Words that the file does not have keep
/// their rows; of a word that it has twice the first vector counts. Throws UserError naming file
/// and line when a line has more or fewer than D numbers or something else than finite numbers, and
/// when the file has none of the vocabulary's words.
void load_vectors(const std::filesystem::path& file, const Vocabulary& vocabulary,
                  Parameter& table);

/// A table [V, D] in the same format, for `load_vectors` and other programs: word2vec text without
/// the rows of padding and of the unknown word, and without tokens that have white space in them.
std::string word2vec_text(const Vocabulary& vocabulary, const Tensor& table);

}  // namespace qkv
