#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"

namespace qkv {

/// Whether `text` is well-formed UTF-8 (RFC 3629: no overlong forms, surrogates or codes above
/// U+10FFFF).
bool is_utf8(std::string_view text);

/// A code point and its length in bytes; of a malformed one the length 0.
struct CodePoint {
  std::size_t length = 0;
  char32_t code = 0;
};
/// `first_code_point` of a text that begins with no ASCII character.
CodePoint first_code_point_beyond_ascii(std::string_view text);
/// The first code point of a UTF-8 text that is not empty.
inline CodePoint first_code_point(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  return byte < 0x80 ? CodePoint{1, byte} : first_code_point_beyond_ascii(text);
}
/// The code point as UTF-8.
std::string utf8(char32_t code);
/// The first code point of a UTF-8 text that is not empty; a byte where it is malformed.
inline std::string_view first_character(std::string_view text) {
  const std::size_t length = first_code_point(text).length;
  return text.substr(0, length > 0 ? length : 1);
}
/// Calls `f` for each code point of a UTF-8 text.
template <class F>
void for_each_character(std::string_view text, F f) {
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    f(character);
    text.remove_prefix(character.size());
  }
}
/// The code points of a UTF-8 text, each as a text.
std::vector<std::string> characters(std::string_view text);

/// `text` with the letters A to Z in lower case.
std::string lower(std::string_view text);

/// `text` split at white space; data files count these words.
std::vector<std::string> words(std::string_view text);
/// `text` without white space at its ends.
std::string_view trimmed(std::string_view text);

/// The integer from 0 on that `text` spells in decimal digits; empty: none.
std::optional<Index> number_in(std::string_view text);

/// The most bytes that a token or a label of a data file may have: what is longer is not text.
inline constexpr std::size_t max_token_bytes = std::size_t{1} << 16;

/// Whether a code point is white space, which parts words and fields: the property White_Space, the
/// zero-width space and the byte order mark.
bool is_white(char32_t code);
/// Whether a code point is a punctuation mark, which is a token of its own: . , ; : ! ? ( ) [ ] "
/// and, beyond ASCII, category P.
bool is_mark(char32_t code);
/// Whether the mark belongs to a word where it stands between two of its letters: hyphens and
/// apostrophes beyond ASCII (as in UAX #29, MidLetter).
bool is_inner_mark(char32_t code);
/// Whether a text is one punctuation mark.
bool is_one_mark(std::string_view text);
/// The number of bytes of a text's first word, which may have marks inside, or else of its first
/// character. The text is not empty.
std::size_t word_length(std::string_view text);
/// A text with each curly apostrophe (U+2019) between letters of a word as the plain one, so that a
/// phone's "don\u2019t" is "don't".
std::string with_plain_apostrophes(std::string_view text);
/// Whether a text begins with white space.
bool begins_with_white(std::string_view text);

}  // namespace qkv
