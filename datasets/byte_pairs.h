#pragma once

#include <string>
#include <vector>

#include "datasets/vocabulary.h"

namespace qkv {

/// The tokens of byte-pair encoding (Sennrich et al. 2016, "Neural Machine Translation of Rare
/// Words with Subword Units"): those of every vocabulary, a token for each byte ("<0x00>" to
/// "<0xFF>"), the characters that occur at least `min_count` times, and `merges` merges: again and
/// again the most frequent pair of adjacent tokens becomes one. A merge needs a pair that occurs
/// twice and `min_count` times. The order is that of the merges; equally frequent pairs are merged
/// in the order of their ids.
std::vector<std::string> byte_pair_tokens(const Vocabulary::Counts& pieces, Index min_count,
                                          Index merges);

}  // namespace qkv
