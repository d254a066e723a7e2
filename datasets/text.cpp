#include "datasets/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>

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

bool begins_with_letter(std::string_view text) {
  if (text.empty()) return false;
  const char32_t code = first_code_point(text).code;
  return !is_white(code) && !is_mark(code);
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = first_code_point(text).length;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

CodePoint first_code_point_beyond_ascii(std::string_view text) {
  utf8proc_int32_t code = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &code);
  if (length <= 0) return {};
  return {static_cast<std::size_t>(length), static_cast<char32_t>(code)};
}

std::string utf8(char32_t code) {
  std::array<utf8proc_uint8_t, 4> bytes = {};
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  return {bytes.begin(), bytes.begin() + length};
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

std::optional<Index> number_in(std::string_view text) {
  Index number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && number >= 0;
  return is_number ? std::optional(number) : std::nullopt;
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

std::size_t word_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const std::string_view rest = text.substr(length), character = first_character(rest);
    const bool is_inside = length > 0 && is_inner_mark(first_code_point(rest).code) &&
                           begins_with_letter(rest.substr(character.size()));
    if (!begins_with_letter(rest) && !is_inside) break;
    length += character.size();
  }
  return std::max(length, first_character(text).size());
}

bool begins_with_white(std::string_view text) {
  return !text.empty() && is_white(first_code_point(text).code);
}

}  // namespace qkv
