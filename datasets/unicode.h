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
bool is_nonspacing(char32_t code);   ///< category Mn
/// Property Cased: letters with a case, and numerals and signs that have both.
bool is_cased(char32_t code);
/// Property Case_Ignorable: marks, modifiers, formats and the punctuation inside words.
bool is_case_ignorable(char32_t code);
/// The simple lower-case mapping; a code without one as it is.
char32_t lower_case(char32_t code);

/// A UTF-8 text in lower case, without accents: the canonical decomposition (NFD) without
/// nonspacing marks (category Mn). A capital sigma at the end of a word becomes U+03C2.
std::string lower_without_accents(std::string_view text);

/// A text in its canonical composition (NFC); one that is not UTF-8 as it is.
std::string composed(std::string_view text);

}  // namespace qkv
