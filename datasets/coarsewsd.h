#pragma once

#include "datasets/sentences.h"

namespace qkv {

struct SentenceSplits {
  SentenceExamples train, valid, test;
};

/// Reads a word's folder of CoarseWSD-20 (Loureiro et al. 2021, "Analysis and evaluation of
/// language models for word sense disambiguation"): `classes_map.txt` and for train and test
/// `*.data.txt` with lines `index<TAB>sentence` and `*.gold.txt` with a label number a line.
/// `valid_share` in [0, 1) of each sense's training sentences, chosen by `seed`, become the valid
/// split. Throws UserError naming file and line.
SentenceSplits read_coarsewsd(const std::filesystem::path& folder, double valid_share,
                              std::uint64_t seed);

}  // namespace qkv
