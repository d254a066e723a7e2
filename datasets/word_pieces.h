#pragma once

/// WordPiece as BERT has it (Devlin et al. 2019; Wu et al. 2016, "Google's Neural Machine
/// Translation System").
namespace qkv {

/// Whether a character is a word of its own: a punctuation mark or an ideograph.
bool is_word_of_its_own(char32_t code);
/// Whether texts lose a character: U+FFFD and controls other than tabs and line ends.
bool is_no_word_piece(char32_t code);

}  // namespace qkv
