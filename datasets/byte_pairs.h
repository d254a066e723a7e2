#pragma once

#include <optional>
#include <string>
#include <string_view>
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

/// Adds the ids of a piece: its characters, of which the adjacent two whose text is the token with
/// the lowest id are merged until there are none. A character that is no token becomes its bytes.
void encode_byte_pairs(std::string_view piece, const Vocabulary& vocabulary,
                       std::vector<std::int32_t>& ids);

/// The byte that a token stands for, if it is one of "<0x00>" to "<0xFF>".
std::optional<char> byte_of(std::string_view token);
/// Throws FileError unless the byte tokens stand where `byte_pair_tokens` has them.
void require_byte_tokens(const Vocabulary& vocabulary);

}  // namespace qkv
