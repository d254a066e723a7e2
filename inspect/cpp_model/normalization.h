#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspect/cpp_model/unicode.h"

namespace qkv_model {

/// Canonical decomposition and composition (NFD and NFC; Unicode Standard Annex #15).
class Normalization {
 public:
  Normalization() {
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

  std::u32string decomposed(std::string_view text) const {
    std::u32string codes;
    for (const char32_t code : codes_of(text)) decompose(code, codes);
    for (std::size_t i = 1; i < codes.size(); ++i)  // marks in the order of their classes
      for (std::size_t j = i;
           j > 0 && class_of(codes[j]) > 0 && class_of(codes[j - 1]) > class_of(codes[j]); --j)
        std::swap(codes[j - 1], codes[j]);
    return codes;
  }

  std::string composed(std::string_view text) const {
    std::u32string result;
    std::size_t starter = 0;  // where the last character is that marks may join
    char32_t before = 0;      // the class of the last character that stayed behind it
    for (const char32_t code : decomposed(text)) {
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
    return utf8(result);
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

/// The tables, read at the first call.
inline const Normalization& normalization() {
  static const Normalization tables;
  return tables;
}

}  // namespace qkv_model
