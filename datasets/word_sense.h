#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/shape.h"

namespace qkv {

/// A sentence, one of its words, and the sense that the word has there.
struct WordSenseExample {
  std::string label;
  std::vector<std::string> words;
  Index index;  ///< the word's position, counted from 0

  friend bool operator==(const WordSenseExample&, const WordSenseExample&) = default;
};

struct WordSenseSplits {
  std::vector<WordSenseExample> train, valid, test;
};

/// Reads lines `label<TAB>index<TAB>sentence`, words between white space. Throws UserError naming
/// file and line.
std::vector<WordSenseExample> read_word_sense_tsv(const std::filesystem::path& path);

/// Reads a word's folder of CoarseWSD-20 (Loureiro et al. 2021, "Analysis and evaluation of
/// language models for word sense disambiguation"): `classes_map.txt` and for train and test
/// `*.data.txt` with lines `index<TAB>sentence` and `*.gold.txt` with a label number a line.
/// `valid_share` in [0, 1) of each sense's training sentences, chosen by `seed`, become the valid
/// split. Throws UserError naming file and line.
WordSenseSplits read_coarsewsd(const std::filesystem::path& folder, double valid_share,
                               std::uint64_t seed);

/// At most `max_words` words around the example's word.
WordSenseExample cropped(const WordSenseExample& example, Index max_words);

}  // namespace qkv
