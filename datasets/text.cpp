#include "datasets/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "datasets/unicode.h"

namespace qkv {
namespace {

constexpr char32_t beyond_ascii = 0x80;

/// Classes of bytes; those of characters beyond ASCII are in none.
constexpr std::uint8_t letter = 1, mark = 2, white = 4, ascii = letter | mark | white;

constexpr auto classes = [] {
  std::array<std::uint8_t, 0x100> table = {};
  for (std::size_t byte = 0; byte < beyond_ascii; ++byte) table[byte] = letter;
  for (const char c : std::string_view(".,;:!?()[]\"")) table[static_cast<unsigned char>(c)] = mark;
  for (const char c : std::string_view(" \t\r\n\v\f")) table[static_cast<unsigned char>(c)] = white;
  return table;
}();

/// The number of bytes that a text begins with of some classes.
std::size_t run_length(std::string_view text, std::uint8_t wanted) {
  std::size_t length = 0;
  while (length < text.size() && classes[static_cast<unsigned char>(text[length])] & wanted)
    ++length;
  return length;
}

/// The number of bytes that a text begins with of white space, or of anything else.
std::size_t prefix_length(std::string_view text, bool is_space) {
  std::size_t length = 0;
  for (;;) {
    length += run_length(text.substr(length), is_space ? white : letter | mark);
    if (length == text.size()) return length;
    const std::string_view character = first_character(text.substr(length));
    if (is_white(first_code_point(character).code) != is_space) return length;
    length += character.size();
  }
}

/// The number of bytes of a text's last character where that is white space, else 0.
std::size_t last_white_length(std::string_view text) {
  constexpr std::size_t most = 4;
  const auto continues = [](char c) { return (c & 0xC0) == 0x80; };
  std::size_t length = 1;
  while (length < std::min(most, text.size()) && continues(text[text.size() - length])) ++length;
  const CodePoint last = first_code_point(text.substr(text.size() - length));
  return last.length == length && is_white(last.code) ? length : 0;
}

bool begins_with_letter(std::string_view text) {
  if (text.empty()) return false;
  const char32_t code = first_code_point(text).code;
  return !is_white(code) && !is_mark(code);
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (;;) {
    text.remove_prefix(run_length(text, ascii));
    if (text.empty()) return true;
    const std::size_t length = first_code_point(text).length;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
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
  while (!text.empty()) {
    const std::size_t length = last_white_length(text);
    if (length == 0) break;
    text.remove_suffix(length);
  }
  return text;
}

std::optional<Index> number_in(std::string_view text) {
  Index number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && number >= 0;
  return is_number ? std::optional(number) : std::nullopt;
}

bool is_white(char32_t code) {
  constexpr char32_t zero_width_space = 0x200B, byte_order_mark = 0xFEFF;
  if (code < beyond_ascii) return classes[code] == white;
  return code == zero_width_space || code == byte_order_mark || is_space(code);
}

bool is_mark(char32_t code) {
  return code < beyond_ascii ? classes[code] == mark : is_punctuation(code);
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
  std::size_t length = run_length(text, letter);
  while (length < text.size()) {
    const std::string_view rest = text.substr(length), character = first_character(rest);
    const bool is_inside = length > 0 && is_inner_mark(first_code_point(rest).code) &&
                           begins_with_letter(rest.substr(character.size()));
    if (!begins_with_letter(rest) && !is_inside) break;
    length += character.size();
    length += run_length(text.substr(length), letter);
  }
  return std::max(length, first_character(text).size());
}

std::string with_plain_apostrophes(std::string_view text) {
  constexpr std::string_view curly = "\u2019";
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

bool begins_with_white(std::string_view text) {
  return !text.empty() && is_white(first_code_point(text).code);
}

}  // namespace qkv
