#pragma once

#include <string>
#include <string_view>

/// Properties of code points (Unicode Character Database).
namespace qkv {

bool is_letter(char32_t code);       ///< category L
bool is_number(char32_t code);       ///< category N
bool is_space(char32_t code);        ///< property White_Space
bool is_control(char32_t code);      ///< category C, which has unassigned codes, too
bool is_punctuation(char32_t code);  ///< category P, or a character of ASCII that is no letter,
                                     ///< number, space or control
bool is_ideograph(char32_t code);    ///< in a block of CJK ideographs

/// A UTF-8 text in lower case, without accents: the canonical decomposition (NFD) without
/// nonspacing marks (category Mn). A capital sigma at the end of a word becomes U+03C2.
std::string lower_without_accents(std::string_view text);

/// A text in its canonical composition (NFC); one that is not UTF-8 as it is.
std::string composed(std::string_view text);

}  // namespace qkv
