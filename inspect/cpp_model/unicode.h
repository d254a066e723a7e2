#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/cpp_model/description.h"

namespace qkv_model {

/// The first character of a text that is not empty.
inline std::string_view first_character(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  return text.substr(0, byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4);
}

inline char32_t code_of(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  char32_t code = character.size() == 1 ? first : first & (0x7FU >> character.size());
  for (const char c : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  return code;
}

/// Whether a byte is one of a character behind its first.
inline bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80;
}

template <class Use>
void for_each_character(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    use(character);
    text.remove_prefix(character.size());
  }
}

inline std::u32string codes_of(std::string_view text) {
  std::u32string codes;
  for_each_character(text, [&](std::string_view character) { codes += code_of(character); });
  return codes;
}

inline std::string utf8(char32_t code) {
  const auto byte = [](char32_t bits) { return static_cast<char>(bits); };
  const auto later = [&](int shift) { return byte(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), later(0)};
  if (code < 0x10000) return {byte(0xE0 | code >> 12), later(6), later(0)};
  return {byte(0xF0 | code >> 18), later(12), later(6), later(0)};
}

inline std::string utf8(const std::u32string& codes) {
  std::string text;
  for (const char32_t code : codes) text += utf8(code);
  return text;
}

inline void require_utf8(std::string_view text) {
  for_each_character(text, [](std::string_view character) {
    const char32_t code = code_of(character);
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    if (utf8(code) != character || surrogate || code > 0x10FFFF)
      throw std::invalid_argument("the text is not valid UTF-8");
  });
}

/// A set of code points.
class Ranges {
 public:
  explicit Ranges(const std::vector<std::string_view>& lines) {
    const std::u32string ends = codes_of(bytes_of(lines));
    for (std::size_t i = 0; i + 1 < ends.size(); i += 2) last_[ends[i]] = ends[i + 1];
  }
  bool has(char32_t code) const {
    const auto after = last_.upper_bound(code);
    return after != last_.begin() && code <= std::prev(after)->second;
  }

 private:
  std::map<char32_t, char32_t> last_;  ///< of the range that begins with a code
};

/// Whether a character is white space, which parts words.
inline bool is_white(std::string_view character) {
  static const Ranges white(description().white_space);
  return white.has(code_of(character));
}
/// Whether a character is a punctuation mark, which is a token of its own.
inline bool is_mark(std::string_view character) {
  static const Ranges marks(description().marks);
  return marks.has(code_of(character));
}
inline bool is_one_mark(std::string_view text) {
  return !text.empty() && first_character(text).size() == text.size() && is_mark(text);
}
inline bool begins_with_white(std::string_view text) {
  return !text.empty() && is_white(first_character(text));
}
inline bool begins_with_letter(std::string_view text) {
  return !text.empty() && !begins_with_white(text) && !is_mark(first_character(text));
}

/// The number of bytes of a text's first word, or else of its first character. Hyphens and
/// apostrophes beyond ASCII may stand between letters of a word.
inline std::size_t word_length(std::string_view text) {
  constexpr std::u32string_view inner = U"\u00B7\u05F3\u05F4\u2010\u2011\u2019";
  std::size_t length = 0;
  while (length < text.size()) {
    const std::string_view rest = text.substr(length), character = first_character(rest);
    const bool is_inside = length > 0 && inner.find(code_of(character)) != inner.npos &&
                           begins_with_letter(rest.substr(character.size()));
    if (!begins_with_letter(rest) && !is_inside) break;
    length += character.size();
  }
  return std::max(length, first_character(text).size());
}

/// A text with each curly apostrophe (U+2019) between letters of a word as the plain one.
inline std::string with_plain_apostrophes(std::string_view text) {
  constexpr std::string_view curly = "\xE2\x80\x99";
  if (text.find(curly) == text.npos) return std::string(text);
  std::string result;
  for (bool in_word = false; !text.empty();) {
    const std::string_view character = first_character(text);
    text.remove_prefix(character.size());
    const bool joins = in_word && character == curly && begins_with_letter(text);
    result += joins ? "'" : character;
    in_word = joins || begins_with_letter(character);
  }
  return result;
}

/// A text split at white space.
inline std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words(1);
  for_each_character(text, [&](std::string_view character) {
    if (!is_white(character))
      words.back() += character;
    else if (!words.back().empty())
      words.emplace_back();
  });
  if (words.back().empty()) words.pop_back();
  return words;
}

/// A text with A to Z in lower case where the model has it so.
inline std::string with_case(std::string text) {
  if (description().lower_case)
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace qkv_model
