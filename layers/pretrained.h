#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "layers/embedding.h"

namespace qkv {

/// Puts the vectors of a word2vec or GloVe text file into the rows of `table` [V, D], whose row i
/// is the vector of tokens[i]: lines `word value...`, with word2vec after a line `words width`.
/// Spaces in a word belong to it. Tokens that the file does not have keep their rows, and so do
/// "<pad>" and "<unk>"; of a word that it has twice the first vector counts. Throws UserError
/// naming file and line when the file cannot be read, when a line has more or fewer than D values
/// or one that is not finite in the table's dtype, when the first line announces other words or
/// another width, and when the file has none of the tokens.
VectorsFound load_vectors(const std::filesystem::path& file, std::span<const std::string> tokens,
                          Parameter& table);

/// A table [V, D] in the same format, for `load_vectors` and other programs: word2vec text without
/// the rows of "<pad>" and "<unk>", and without tokens that have white space in them.
std::string word2vec_text(std::span<const std::string> tokens, const Tensor& table);

}  // namespace qkv
