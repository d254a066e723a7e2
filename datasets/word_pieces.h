#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/vocabulary.h"

/// WordPiece as BERT has it (Devlin et al. 2019; Wu et al. 2016, "Google's Neural Machine
/// Translation System").
namespace qkv {

/// What a sentence begins and ends with.
inline constexpr std::string_view first_word_piece = "[CLS]", last_word_piece = "[SEP]";
/// What a token that continues a word begins with.
inline constexpr std::string_view word_piece_prefix = "##";

/// A text without malformed bytes, control characters and U+FFFD; with `lower_case` in lower case
/// and without accents. Tabs and line ends stay.
std::string without_controls(std::string_view text, bool lower_case);

/// The number of bytes of the first word of a text that begins with no white space: a punctuation
/// mark, an ideograph, or what comes before the next of these or white space.
std::size_t basic_word_length(std::string_view text);

/// Adds the ids of a word: of its longest beginning that is a token, then of the longest beginning
/// of the rest that is one behind "##", and so on. The unknown token where there is none, or the
/// word has more than 100 characters.
void encode_word_pieces(std::string_view word, const Vocabulary& vocabulary,
                        std::vector<std::int32_t>& ids);

/// Throws FileError unless a vocabulary has the tokens that a sentence begins and ends with.
void require_word_pieces(const Vocabulary& vocabulary);

}  // namespace qkv
