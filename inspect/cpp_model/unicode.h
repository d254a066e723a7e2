#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
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

inline std::u32string codes_of(std::string_view text) {
  std::u32string codes;
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    codes += code_of(character);
    text.remove_prefix(character.size());
  }
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

inline void require_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    const char32_t code = code_of(character);
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    if (utf8(code) != character || surrogate || code > 0x10FFFF)
      throw std::invalid_argument("the text is not valid UTF-8");
    text.remove_prefix(character.size());
  }
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

/// A text split at white space.
inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    if (!is_white(character))
      words.back() += character;
    else if (!words.back().empty())
      words.emplace_back();
    text.remove_prefix(character.size());
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// Canonical composition (NFC; Unicode Standard Annex #15).
class Composition {
 public:
  Composition() {
    const auto read = [](const std::vector<std::string_view>& lines, const auto& use) {
      const std::u32string codes = codes_of(bytes_of(lines));
      for (std::size_t i = 0; i + 2 < codes.size(); i += 3)
        use(codes[i], codes[i + 1], codes[i + 2]);
    };
    read(description().composed, [this](char32_t whole, char32_t first, char32_t second) {
      parts_[whole] = {first, second};
      wholes_[{first, second}] = whole;
    });
    read(description().decomposed, [this](char32_t whole, char32_t first, char32_t second) {
      parts_[whole] = {first, second};
    });
    read(description().classes, [this](char32_t first, char32_t last, char32_t value) {
      for (char32_t code = first; code <= last; ++code) classes_[code] = value;
    });
  }

  std::string operator()(std::string_view text) const {
    std::u32string codes;
    for (const char32_t code : codes_of(text)) decompose(code, codes);
    for (std::size_t i = 1; i < codes.size(); ++i)  // marks in the order of their classes
      for (std::size_t j = i;
           j > 0 && class_of(codes[j]) > 0 && class_of(codes[j - 1]) > class_of(codes[j]); --j)
        std::swap(codes[j - 1], codes[j]);
    std::u32string result;
    std::size_t starter = 0;  // where the last character is that marks may join
    char32_t before = 0;      // the class of the last character that stayed behind it
    for (const char32_t code : codes) {
      const char32_t value = class_of(code);
      const bool meets =
          starter < result.size() && (starter + 1 == result.size() || before < value);
      const char32_t whole = meets ? whole_of(result[starter], code) : 0;
      if (whole != 0) {
        result[starter] = whole;
        continue;
      }
      if (value == 0) starter = result.size();
      before = value;
      result += code;
    }
    std::string composed;
    for (const char32_t code : result) composed += utf8(code);
    return composed;
  }

 private:
  // The syllables of Hangul have no entries in the tables (Unicode Standard, 3.12).
  static constexpr char32_t syllables = 0xAC00, syllable_count = 11172;
  static constexpr char32_t leading = 0x1100, vowels = 0x1161, trailing = 0x11A7;
  static constexpr char32_t vowel_count = 21, trailing_count = 28;

  static bool is_syllable(char32_t code) {
    return code >= syllables && code < syllables + syllable_count;
  }
  char32_t class_of(char32_t code) const {
    const auto found = classes_.find(code);
    return found == classes_.end() ? 0 : found->second;
  }

  void decompose(char32_t code, std::u32string& codes) const {
    if (is_syllable(code)) {
      const char32_t i = code - syllables;
      codes +=
          {leading + i / trailing_count / vowel_count, vowels + i / trailing_count % vowel_count};
      if (i % trailing_count > 0) codes += trailing + i % trailing_count;
    } else if (const auto found = parts_.find(code); found != parts_.end()) {
      decompose(found->second.first, codes);
      if (found->second.second != 0) decompose(found->second.second, codes);
    } else {
      codes += code;
    }
  }

  /// The character that two make up; 0: none.
  char32_t whole_of(char32_t first, char32_t second) const {
    constexpr char32_t leading_count = syllable_count / vowel_count / trailing_count;
    if (first - leading < leading_count && second - vowels < vowel_count)
      return syllables + ((first - leading) * vowel_count + (second - vowels)) * trailing_count;
    if (is_syllable(first) && (first - syllables) % trailing_count == 0 && second > trailing &&
        second < trailing + trailing_count)
      return first + (second - trailing);
    const auto found = wholes_.find({first, second});
    return found == wholes_.end() ? 0 : found->second;
  }

  std::map<char32_t, std::pair<char32_t, char32_t>> parts_;
  std::map<std::pair<char32_t, char32_t>, char32_t> wholes_;
  std::map<char32_t, char32_t> classes_;
};

/// A text as a model of learned tokens reads it: composed, with A to Z in lower case where the
/// model has it so.
inline std::string prepared(std::string_view text) {
  static const Composition composition;
  // No character before U+0300, whose bytes begin with CC, composes or decomposes.
  const bool may_change = std::any_of(text.begin(), text.end(),
                                      [](char c) { return static_cast<unsigned char>(c) >= 0xCC; });
  std::string result = may_change ? composition(text) : std::string(text);
  if (description().lower_case)
    for (char& c : result)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

}  // namespace qkv_model
