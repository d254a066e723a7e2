#include "datasets/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "datasets/unicode.h"

namespace qkv {
namespace {

constexpr char32_t beyond_ascii = 0x80;

constexpr std::array<bool, beyond_ascii> members(std::string_view characters) {
  std::array<bool, beyond_ascii> table = {};
  for (const char c : characters) table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr auto ascii_white = members(" \t\r\n\v\f"), ascii_marks = members(".,;:!?()[]\"");

/// The number of bytes that a text begins with of white space, or of anything else.
std::size_t prefix_length(std::string_view text, bool white) {
  std::size_t length = 0;
  while (length < text.size()) {
    const std::string_view character = first_character(text.substr(length));
    if (is_white(first_code_point(character).code) != white) break;
    length += character.size();
  }
  return length;
}

bool is_valid(CodePoint c) {
  const bool overlong = (c.length == 3 && c.code < 0x800) || (c.length == 4 && c.code < 0x10000);
  const bool surrogate = c.code >= 0xD800 && c.code <= 0xDFFF;
  return c.length > 0 && !overlong && !surrogate && c.code <= 0x10FFFF;
}

/// The number of ASCII bytes that a text begins with, to the multiple of 8 below.
std::size_t ascii_prefix(std::string_view text) {
  std::size_t length = 0;
  for (; length + 8 <= text.size(); length += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, text.data() + length, 8);
    if (eight & 0x8080808080808080u) break;
  }
  return length;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (;;) {
    text.remove_prefix(ascii_prefix(text));
    if (text.empty()) return true;
    const CodePoint c = first_code_point(text);
    if (!is_valid(c)) return false;
    text.remove_prefix(c.length);
  }
}

CodePoint first_code_point_beyond_ascii(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0xC2   ? 0
                             : byte(0) < 0xE0 ? 2
                             : byte(0) < 0xF0 ? 3
                             : byte(0) < 0xF5 ? 4
                                              : 0;
  if (length == 0 || length > text.size()) return {};
  char32_t code = byte(0) & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {length, code};
}

std::string utf8(char32_t code) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  const auto tail = [&](int shift) { return byte(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), tail(0)};
  if (code < 0x10000) return {byte(0xE0 | code >> 12), tail(6), tail(0)};
  return {byte(0xF0 | code >> 18), tail(12), tail(6), tail(0)};
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> result;
  for_each_character(text, [&](std::string_view c) { result.emplace_back(c); });
  return result;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  for (;;) {
    text.remove_prefix(prefix_length(text, true));
    if (text.empty()) return result;
    const std::size_t length = prefix_length(text, false);
    result.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(prefix_length(text, true));
  std::size_t at = 0, end = 0;  // `end`: of the last word up to `at`
  while (at < text.size()) {
    end = at + prefix_length(text.substr(at), false);
    at = end + prefix_length(text.substr(end), true);
  }
  return text.substr(0, end);
}

bool is_white(char32_t code) {
  constexpr char32_t zero_width_space = 0x200B, byte_order_mark = 0xFEFF;
  if (code < beyond_ascii) return ascii_white[code];
  return code == zero_width_space || code == byte_order_mark || is_space(code);
}

bool is_mark(char32_t code) {
  return code < beyond_ascii ? ascii_marks[code] : is_punctuation(code);
}

bool is_inner_mark(char32_t code) {
  constexpr std::u32string_view marks = U"\u00B7\u05F3\u05F4\u2010\u2011\u2019";
  return marks.find(code) != marks.npos;
}

bool is_one_mark(std::string_view text) {
  if (text.empty()) return false;
  const CodePoint c = first_code_point(text);
  return c.length == text.size() && is_mark(c.code);
}

bool begins_with_white(std::string_view text) {
  return !text.empty() && is_white(first_code_point(text).code);
}

std::size_t longest_token(std::string_view text) {
  std::size_t longest = 0, length = 0;
  for_each_character(text, [&](std::string_view character) {
    const char32_t code = first_code_point(character).code;
    length = is_white(code) || is_mark(code) ? 0 : length + character.size();
    longest = std::max(longest, length);
  });
  return longest;
}

}  // namespace qkv
