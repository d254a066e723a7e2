#include "datasets/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace qkv {
namespace {

constexpr std::string_view white = " \t\r\n\v\f";

constexpr std::array<bool, 256> members(std::string_view characters) {
  std::array<bool, 256> table = {};
  for (const char c : characters) table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr auto is_in_white = members(white), is_in_marks = members(".,;:!?()[]\"");

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
    text.remove_prefix(std::min(text.find_first_not_of(white), text.size()));
    if (text.empty()) return result;
    const std::size_t length = std::min(text.find_first_of(white), text.size());
    result.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
}

bool is_white(char c) {
  return is_in_white[static_cast<unsigned char>(c)];
}

bool is_mark(char c) {
  return is_in_marks[static_cast<unsigned char>(c)];
}

std::size_t longest_token(std::string_view text) {
  std::size_t longest = 0, length = 0;
  for (const char c : text) {
    length = is_white(c) || is_mark(c) ? 0 : length + 1;
    longest = std::max(longest, length);
  }
  return longest;
}

}  // namespace qkv
