#include "datasets/text.h"

#include <algorithm>

namespace qkv {
namespace {

constexpr std::string_view white = " \t\r\n\v\f";
constexpr std::string_view marks = ".,;:!?()[]\"";

struct Character {
  std::size_t length = 0;  ///< in bytes; 0 when malformed
  char32_t code = 0;
};

Character decoded(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {1, byte(0)};
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

bool is_valid(Character c) {
  const bool overlong = (c.length == 3 && c.code < 0x800) || (c.length == 4 && c.code < 0x10000);
  const bool surrogate = c.code >= 0xD800 && c.code <= 0xDFFF;
  return c.length > 0 && !overlong && !surrogate && c.code <= 0x10FFFF;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character c = decoded(text);
    if (!is_valid(c)) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

std::string_view first_character(std::string_view text) {
  return text.substr(0, std::max<std::size_t>(decoded(text).length, 1));
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

TokenizedWords tokenized_words(std::string_view text) {
  TokenizedWords result;
  for (const std::string& word : words(text)) {
    const auto tokens = tokenized(word);
    const auto named = std::ranges::find_if(tokens, [](const std::string& token) {
      return token.size() > 1 || marks.find(token[0]) == marks.npos;
    });
    const auto offset = named == tokens.end() ? 0 : named - tokens.begin();
    result.positions.push_back(std::ssize(result.tokens) + offset);
    result.tokens.insert(result.tokens.end(), tokens.begin(), tokens.end());
  }
  return result;
}

std::size_t longest_token(std::string_view text) {
  std::size_t longest = 0, length = 0;
  for (const char c : text) {
    const bool ends = white.find(c) != white.npos || marks.find(c) != marks.npos;
    length = ends ? 0 : length + 1;
    longest = std::max(longest, length);
  }
  return longest;
}

std::vector<std::string> tokenized(std::string_view text) {
  std::string spaced;
  for (const char c : lower(text)) {
    const bool mark = marks.find(c) != marks.npos;
    if (mark) spaced += ' ';
    spaced += c;
    if (mark) spaced += ' ';
  }
  return words(spaced);
}

}  // namespace qkv
