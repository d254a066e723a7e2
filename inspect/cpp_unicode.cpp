#include "inspect/cpp_unicode.h"

#include <utf8proc.h>

#include <array>
#include <map>

#include "core/error.h"
#include "datasets/text.h"
#include "datasets/unicode.h"

namespace qkv::cpp_export {
namespace {

constexpr char32_t first_surrogate = 0xD800, last_surrogate = 0xDFFF, last_code = 0x10FFFF;

template <class F>
void for_each_code(F f) {
  for (char32_t code = 0; code <= last_code; ++code)
    if (code < first_surrogate || code > last_surrogate) f(code);
}

/// The canonical decomposition (NFD).
std::u32string decomposed(char32_t code) {
  std::array<utf8proc_int32_t, 32> codes = {};
  const auto length = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), codes.data(),
                                              static_cast<utf8proc_ssize_t>(codes.size()),
                                              UTF8PROC_DECOMPOSE, nullptr);
  require<ValueError>(length > 0 && length <= std::ssize(codes),
                      "[unicode] U+{:04X} has no decomposition", static_cast<std::uint32_t>(code));
  return {codes.begin(), codes.begin() + length};
}

int combining_class(char32_t code) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class;
}

/// First and last of the ranges of equal values that are not 0, and the value if `with_value`.
template <class ValueOf>
std::string ranges_of(ValueOf value_of, bool with_value) {
  std::string text;
  char32_t first = 0, last = 0;
  int value = 0;
  const auto end_range = [&] {
    if (value == 0) return;
    text += utf8(first) + utf8(last);
    if (with_value) text += utf8(static_cast<char32_t>(value));
  };
  for_each_code([&](char32_t code) {
    const int next = value_of(code);
    if (next != value) {
      end_range();
      first = code;
      value = next;
    }
    last = code;
  });
  end_range();
  return text;
}

/// The decompositions by one step of the characters that stay composed, or of the others. Syllables
/// of Hangul follow a formula (Unicode Standard, 3.12).
std::string pairs(bool stay_composed) {
  constexpr char32_t first_syllable = 0xAC00, last_syllable = 0xD7A3;
  std::map<char32_t, std::u32string> decompositions;
  std::map<std::u32string, char32_t> wholes;
  const auto is_composed = [](char32_t code) { return composed(utf8(code)) == utf8(code); };
  for_each_code([&](char32_t code) {
    if (code >= first_syllable && code <= last_syllable) return;
    const std::u32string parts = decomposed(code);
    if (parts.front() == code) return;
    decompositions[code] = parts;
    if (!wholes.contains(parts) || is_composed(code)) wholes[parts] = code;
  });
  std::string text;
  for (const auto& [code, parts] : decompositions) {
    if (is_composed(code) != stay_composed) continue;
    const std::u32string beginning = parts.substr(0, parts.size() - 1);
    const char32_t first = beginning.size() > 1 ? wholes.at(beginning) : parts.front();
    text += utf8(code) + utf8(first) + utf8(parts.size() > 1 ? parts.back() : 0);
  }
  return text;
}

}  // namespace

std::string ranges_with(bool (*property)(char32_t code)) {
  return ranges_of([&](char32_t code) { return property(code) ? 1 : 0; }, false);
}

std::string composed_pairs() {
  return pairs(true);
}

std::string decomposed_pairs() {
  return pairs(false);
}

std::string combining_classes() {
  return ranges_of(combining_class, true);
}

std::string lower_pairs() {
  std::string text;
  for_each_code([&](char32_t code) {
    if (lower_case(code) != code) text += utf8(code) + utf8(lower_case(code));
  });
  return text;
}

}  // namespace qkv::cpp_export
