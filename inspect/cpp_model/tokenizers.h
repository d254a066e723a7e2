#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inspect/cpp_model/layers.h"
#include "inspect/cpp_model/unicode.h"

namespace qkv_model {

constexpr int unknown_id = 1, first_text_id = 2;

/// The id of a token; that of the unknown token where it is not listed.
inline int id_of(std::string_view token) {
  static const std::unordered_map<std::string_view, int> ids = [] {
    std::unordered_map<std::string_view, int> by_token;
    for (const std::string_view text : description().tokens)
      by_token.emplace(text, static_cast<int>(by_token.size()));
    by_token[description().tokens[0]] = unknown_id;  // no text is padding
    return by_token;
  }();
  const auto found = ids.find(token);
  return found == ids.end() ? unknown_id : found->second;
}

inline std::string_view token_of(int id) {
  return description().tokens[static_cast<std::size_t>(id)];
}

/// Words and punctuation marks; white space is left out.
struct WordTokenizer {
  static constexpr bool keeps_spaces = false, leads_with_space = false, divides_pieces = false;

  static std::size_t piece_length(std::string_view text) { return word_length(text); }
  static void encode(std::string_view piece, Ids& ids) { ids.push_back(id_of(piece)); }
  static void append(std::string_view token, std::string& text) {
    if (!text.empty()) text += ' ';
    text += token;
  }
};

struct CharacterTokenizer {
  static constexpr bool keeps_spaces = true, leads_with_space = false, divides_pieces = false;

  static std::size_t piece_length(std::string_view text) { return first_character(text).size(); }
  static void encode(std::string_view piece, Ids& ids) { ids.push_back(id_of(piece)); }
  static void append(std::string_view token, std::string& text) { text += token; }
};

/// Byte-pair encoding (Sennrich et al. 2016) of words and punctuation marks, each with the space
/// before it.
struct BytePairTokenizer {
  static constexpr bool keeps_spaces = true, leads_with_space = true, divides_pieces = true;

  static std::size_t piece_length(std::string_view text) {
    constexpr std::size_t longest = 64;  // in bytes; longer words are cut
    const bool leads = text[0] == ' ' && text.size() > 1 && !begins_with_white(text.substr(1));
    const std::size_t begin = leads ? 1 : 0;
    std::size_t length = begin + word_length(text.substr(begin));
    if (length <= longest) return length;
    length = longest;
    while ((static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80 && length > begin + 1)
      --length;
    return length;
  }

  /// Characters that are no tokens become bytes; then the two adjacent tokens whose text is the
  /// token with the lowest id are joined, until there are none.
  static void encode(std::string_view piece, Ids& ids) {
    Ids symbols;
    while (!piece.empty()) {
      const std::string_view character = first_character(piece);
      if (const int id = id_of(character); id != unknown_id)
        symbols.push_back(id);
      else
        for (const char c : character)
          symbols.push_back(first_text_id + static_cast<unsigned char>(c));
      piece.remove_prefix(character.size());
    }
    for (;;) {
      std::size_t best = symbols.size();
      int joined = 0;
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        const int id = joined_id(symbols[i], symbols[i + 1]);
        if (id == unknown_id || (best < symbols.size() && joined <= id)) continue;
        best = i;
        joined = id;
      }
      if (best == symbols.size()) break;
      symbols[best] = joined;
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    ids.insert(ids.end(), symbols.begin(), symbols.end());
  }

  static void append(std::string_view token, std::string& text) {
    const int id = id_of(token);
    if (is_byte(id))
      text += static_cast<char>(id - first_text_id);
    else
      text += token;
  }

 private:
  static constexpr int byte_count = 256;

  static bool is_byte(int id) { return id >= first_text_id && id < first_text_id + byte_count; }
  static bool is_text(int id) { return id >= first_text_id + byte_count; }
  static int joined_id(int first, int second) {
    if (!is_text(first) || !is_text(second)) return unknown_id;
    const int id = id_of(std::string(token_of(first)) + std::string(token_of(second)));
    return is_text(id) ? id : unknown_id;
  }
};

/// Calls `use` for the pieces of a text, which no token reaches across.
template <class Tokenizer, class Use>
void for_each_piece(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, Tokenizer::piece_length(text));
    if (Tokenizer::keeps_spaces || !begins_with_white(piece)) use(piece);
    text.remove_prefix(piece.size());
  }
}

/// Tokens as one text.
template <class Tokenizer>
std::string text_of(const Ids& ids) {
  std::string text;
  for (const int id : ids) Tokenizer::append(token_of(id), text);
  return text;
}

}  // namespace qkv_model
