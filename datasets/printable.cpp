#include "datasets/printable.h"

#include <map>

#include "datasets/text.h"

namespace qkv {
namespace {

constexpr char32_t replacement = 0xFFFD;

/// Code point of one character; a byte that is not UTF-8 counts as U+FFFD.
char32_t code_of(std::string_view character) {
  const CodePoint point = first_code_point(character);
  return point.length > 0 ? point.code : replacement;
}

/// A picture of a control character, and U+FFFD for what has none; empty for other characters.
std::string sign_of(char32_t code) {
  if (code < 0x20) return {'\xE2', '\x90', static_cast<char>(0x80 + code)};  // U+2400 and following
  if (code == 0x7F) return "␡";
  const bool has_none = (code >= 0x80 && code < 0xA0) || (code >= replacement && code <= 0xFFFF);
  return has_none ? "\xEF\xBF\xBD" : "";
}

/// `text` with the given signs in place of some characters, and signs of all control characters
/// that are not in `kept`.
std::string with_signs(std::string_view text,
                       const std::map<std::string_view, std::string_view>& signs,
                       std::string_view kept = "") {
  std::string result;
  for_each_character(text, [&](std::string_view c) {
    const auto given = signs.find(c);
    const std::string sign = given != signs.end()        ? std::string(given->second)
                             : kept.find(c) != kept.npos ? ""
                                                         : sign_of(code_of(c));
    result += sign.empty() ? c : sign;
  });
  return result;
}

}  // namespace

std::string in_one_line(std::string_view text) {
  return with_signs(text, {{"\n", "↵"}, {"\t", "⇥"}});
}

std::string printable(std::string_view text) {
  return with_signs(text, {}, "\n\t");
}

std::string visible(const std::string& token) {
  return with_signs(token, {{"\n", "↵"}, {"\t", "⇥"}, {" ", "·"}});
}

}  // namespace qkv
