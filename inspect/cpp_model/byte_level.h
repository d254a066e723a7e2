#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "inspect/cpp_model/tokens.h"

namespace qkv_model {

/// Byte-level byte-pair encoding as GPT-2 has it (Radford et al. 2019, 2.2).
struct ByteLevelTokenizer : TokenRules {
  static constexpr bool keeps_spaces = true, divides_pieces = true;

  static std::string prepared(std::string_view text) { return with_case(std::string(text)); }

  /// By the pattern 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  static std::size_t piece_length(std::string_view text) {
    for (const std::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (text.substr(0, contraction.size()) == contraction) return contraction.size();
    const std::size_t begin = text[0] == ' ' ? 1 : 0;
    const Kind kind = begin < text.size() ? kind_of(text.substr(begin)) : Kind::space;
    if (kind != Kind::space) return begin + run_length(text.substr(begin), kind);
    // The last character of white space belongs to what follows.
    const std::size_t run = run_length(text, Kind::space);
    std::size_t last = run - 1;
    while (continues_character(text[last])) --last;
    return run == text.size() || last == 0 ? run : last;
  }

  /// The printable characters of its bytes, of which pairs are merged in the order of the merges.
  static void encode(std::string_view piece, Ids& ids) {
    Ids symbols;
    for (const char c : piece)
      symbols.push_back(id_of(utf8(printable()[static_cast<unsigned char>(c)])));
    append_merged(std::move(symbols), merge_of, ids);
  }

  /// The bytes of printable characters; a character that stands for no byte stays as it is.
  static void append(std::string_view token, std::string& text) {
    for_each_character(token, [&](std::string_view character) {
      const std::size_t byte = printable().find(code_of(character));
      if (byte == std::u32string::npos)
        text += character;
      else
        text += static_cast<char>(byte);
    });
  }

 private:
  enum class Kind { letter, number, space, other };

  static Kind kind_of(std::string_view text) {
    static const Ranges letters(description().letters), numbers(description().numbers),
        spaces(description().spaces);
    const char32_t code = code_of(first_character(text));
    return letters.has(code)   ? Kind::letter
           : numbers.has(code) ? Kind::number
           : spaces.has(code)  ? Kind::space
                               : Kind::other;
  }
  static std::size_t run_length(std::string_view text, Kind kind) {
    std::size_t length = 0;
    while (length < text.size() && kind_of(text.substr(length)) == kind)
      length += first_character(text.substr(length)).size();
    return length;
  }

  static const std::u32string& printable() {
    static const std::u32string characters = codes_of(bytes_of(description().printable));
    return characters;
  }
  static std::optional<Merge> merge_of(int first, int second) {
    static const std::map<std::pair<int, int>, Merge> merges = [] {
      std::map<std::pair<int, int>, Merge> by_pair;
      for (const std::string_view text : description().merges) {
        const std::string_view a = text.substr(0, text.find(' ')), b = text.substr(a.size() + 1);
        const Merge merge = {static_cast<int>(by_pair.size()),
                             id_of(std::string(a) + std::string(b))};
        by_pair.emplace(std::pair(id_of(a), id_of(b)), merge);
      }
      return by_pair;
    }();
    const auto found = merges.find({first, second});
    return found == merges.end() ? std::nullopt : std::optional(found->second);
  }
};

}  // namespace qkv_model
