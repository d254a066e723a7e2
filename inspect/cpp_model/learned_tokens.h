#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "inspect/cpp_model/normalization.h"
#include "inspect/cpp_model/tokens.h"

namespace qkv_model {

/// Tokens that were learned from the training data.
struct LearnedTokens : TokenRules {
  /// A text as such tokens are: composed, with A to Z in lower case where the model has it so.
  static std::string prepared(std::string_view text) {
    // No character before U+0300, whose bytes begin with CC, composes or decomposes.
    const bool may_change = std::any_of(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xCC; });
    return with_case(may_change ? normalization().composed(text) : std::string(text));
  }
};

/// Words and punctuation marks; white space is left out.
struct WordTokenizer : LearnedTokens {
  static std::string prepared(std::string_view text) {
    return with_plain_apostrophes(LearnedTokens::prepared(text));
  }
  static std::size_t piece_length(std::string_view text) { return word_length(text); }
  static void encode(std::string_view piece, Ids& ids) { ids.push_back(id_of(piece)); }
  static void append(std::string_view token, std::string& text) {
    if (!text.empty()) text += ' ';
    text += token;
  }
};

struct CharacterTokenizer : LearnedTokens {
  static constexpr bool keeps_spaces = true;

  static std::size_t piece_length(std::string_view text) { return first_character(text).size(); }
  static void encode(std::string_view piece, Ids& ids) { ids.push_back(id_of(piece)); }
  static void append(std::string_view token, std::string& text) { text += token; }
};

/// Byte-pair encoding (Sennrich et al. 2016) of words and punctuation marks, each with the space
/// before it.
struct BytePairTokenizer : LearnedTokens {
  static constexpr bool keeps_spaces = true, leads_with_space = true, divides_pieces = true;

  static std::size_t piece_length(std::string_view text) {
    constexpr std::size_t longest = 64;  // in bytes; longer words are cut
    const bool leads = text[0] == ' ' && text.size() > 1 && !begins_with_white(text.substr(1));
    const std::size_t begin = leads ? 1 : 0;
    std::size_t length = begin + word_length(text.substr(begin));
    if (length <= longest) return length;
    length = longest;
    while (continues_character(text[length]) && length > begin + 1) --length;
    return length;
  }

  /// Characters that are no tokens become bytes; then the two adjacent tokens whose text is the
  /// token with the lowest id are joined, until there are none.
  static void encode(std::string_view piece, Ids& ids) {
    Ids symbols;
    for_each_character(piece, [&](std::string_view character) {
      if (const int id = id_of(character); id != unknown_id)
        symbols.push_back(id);
      else
        for (const char c : character)
          symbols.push_back(first_byte + static_cast<unsigned char>(c));
    });
    append_merged(std::move(symbols), merge_of, ids);
  }

  static void append(std::string_view token, std::string& text) {
    const int id = id_of(token);
    if (is_byte(id))
      text += static_cast<char>(id - first_byte);
    else
      text += token;
  }

 private:
  static constexpr int first_byte = 2, byte_count = 256;  // ids of "<0x00>" to "<0xFF>"

  static bool is_byte(int id) { return id >= first_byte && id < first_byte + byte_count; }
  static bool is_text(int id) { return id >= first_byte + byte_count; }
  static std::optional<Merge> merge_of(int first, int second) {
    if (!is_text(first) || !is_text(second)) return std::nullopt;
    const int id = id_of(std::string(token_of(first)) + std::string(token_of(second)));
    return is_text(id) ? std::optional(Merge{id, id}) : std::nullopt;
  }
};

}  // namespace qkv_model
