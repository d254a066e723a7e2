#include "datasets/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "core/error.h"
#include "datasets/text.h"

namespace qkv {
namespace {

using Range = std::pair<char32_t, char32_t>;  // both ends belong to it

/// The CJK Unified Ideographs with their extensions A to E and the compatibility ideographs.
constexpr auto ideographs = std::to_array<Range>({{0x3400, 0x4DBF},
                                                  {0x4E00, 0x9FFF},
                                                  {0xF900, 0xFAFF},
                                                  {0x20000, 0x2A6DF},
                                                  {0x2A700, 0x2CEAF},
                                                  {0x2F800, 0x2FA1F}});

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

/// Whether a sigma ends a word (Final_Sigma of the Unicode Standard, 3.13): a cased letter comes
/// before it and none after it, both with ignorable characters between.
bool ends_word(const std::vector<char32_t>& codes, std::vector<char32_t>::const_iterator sigma) {
  const auto meets_letter = [](auto begin, auto end) {
    const auto found = std::find_if_not(begin, end, is_case_ignorable);
    return found != end && is_cased(*found);
  };
  return meets_letter(std::make_reverse_iterator(sigma), codes.rend()) &&
         !meets_letter(std::next(sigma), codes.end());
}

/// Throws ValueError when the text is not UTF-8.
std::string mapped(std::string_view text, utf8proc_option_t options) {
  utf8proc_uint8_t* result = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()), &result, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  require<ValueError>(length >= 0, "[unicode] {}", utf8proc_errmsg(length));
  return {reinterpret_cast<const char*>(result), static_cast<std::size_t>(length)};
}

}  // namespace

bool is_letter(char32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_number(char32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool is_space(char32_t code) {
  constexpr char32_t next_line = 0x85;
  const auto c = category(code);
  return (c >= UTF8PROC_CATEGORY_ZS && c <= UTF8PROC_CATEGORY_ZP) ||
         (code >= '\t' && code <= '\r') || code == next_line;
}

bool is_control(char32_t code) {
  const auto c = category(code);
  return c == UTF8PROC_CATEGORY_CN || c >= UTF8PROC_CATEGORY_CC;
}

bool is_punctuation(char32_t code) {
  const auto c = category(code);
  if (c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO) return true;
  return code > ' ' && code < 0x7F && !is_letter(code) && !is_number(code);
}

bool is_cased(char32_t code) {
  const auto c = category(code);
  const auto number = static_cast<utf8proc_int32_t>(code);
  return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT ||
         utf8proc_tolower(number) != number || utf8proc_toupper(number) != number ||
         code == U'\u00AA' || code == U'\u00BA';
}

bool is_case_ignorable(char32_t code) {
  constexpr std::u32string_view inside_words =
      U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  constexpr std::array ignored = {UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME, UTF8PROC_CATEGORY_CF,
                                  UTF8PROC_CATEGORY_LM, UTF8PROC_CATEGORY_SK};
  return std::ranges::find(ignored, category(code)) != ignored.end() ||
         inside_words.find(code) != inside_words.npos;
}

bool is_nonspacing(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_MN;
}

char32_t lower_case(char32_t code) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

bool is_ideograph(char32_t code) {
  return std::ranges::any_of(
      ideographs, [=](const Range& range) { return range.first <= code && code <= range.second; });
}

std::string lower_without_accents(std::string_view text) {
  const std::string decomposed = mapped(text, UTF8PROC_DECOMPOSE);
  std::vector<char32_t> codes;
  for_each_character(decomposed, [&](std::string_view character) {
    codes.push_back(first_code_point(character).code);
  });
  constexpr char32_t capital_sigma = 0x3A3, final_sigma = 0x3C2;
  std::string result;
  for (auto code = codes.cbegin(); code != codes.cend(); ++code) {
    if (is_nonspacing(*code)) continue;
    const bool is_final = *code == capital_sigma && ends_word(codes, code);
    result += utf8(is_final ? final_sigma : lower_case(*code));
  }
  return result;
}

std::string composed(std::string_view text) {
  // No character before U+0300, whose bytes begin with CC, composes or decomposes.
  const bool may_change =
      std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0xCC; });
  if (!may_change || !is_utf8(text)) return std::string(text);
  return mapped(text, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
}

}  // namespace qkv
