#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/cpp_model/normalization.h"
#include "inspect/cpp_model/tokens.h"

namespace qkv_model {

/// WordPiece as BERT has it (Devlin et al. 2019; Wu et al. 2016).
struct WordPieceTokenizer : TokenRules {
  static constexpr bool divides_pieces = true;
  static constexpr std::string_view first = "[CLS]", last = "[SEP]";

  /// White space that is a control character to BERT parts no words.
  static std::vector<std::string> words_of(std::string_view text) {
    return split(without(text, [](std::string_view character) {
      return is_white(character) && is_left_out(character);
    }));
  }
  /// A text without control characters; in lower case and without accents where the model has it
  /// so.
  static std::string prepared(std::string_view text) {
    const std::string kept = without(text, is_left_out);
    return description().lower_case ? lower_without_accents(kept) : kept;
  }
  /// A punctuation mark, an ideograph, a character of white space, or all before the next of these.
  static std::size_t piece_length(std::string_view text) {
    static const Ranges separate(description().separate);
    std::size_t length = 0;
    while (length < text.size()) {
      const std::string_view character = first_character(text.substr(length));
      if (is_white(character) || separate.has(code_of(character))) break;
      length += character.size();
    }
    return std::max(length, first_character(text).size());
  }

  /// The longest beginning that is a token, then that of the rest behind "##", and so on; the
  /// unknown token where there is none, or the word has more than 100 characters.
  static void encode(std::string_view word, Ids& ids) {
    constexpr std::size_t longest = 100;
    const std::size_t before = ids.size();
    const bool is_short = codes_of(word).size() <= longest;
    std::string_view rest = word;
    while (is_short && !rest.empty()) {
      const std::string lead(rest.size() < word.size() ? prefix : "");
      std::size_t length = rest.size();
      const auto id = [&] { return id_of(lead + std::string(rest.substr(0, length))); };
      while (length > 0 && id() == unknown_id) do
          --length;
        while (continues_character(rest[length]));
      if (length == 0) break;
      ids.push_back(id());
      rest.remove_prefix(length);
    }
    if (rest.empty()) return;
    ids.resize(before);
    ids.push_back(unknown_id);
  }

  static void append(std::string_view token, std::string& text) {
    const bool continues = token.substr(0, prefix.size()) == prefix;
    if (!continues && !text.empty()) text += ' ';
    text += token.substr(continues ? prefix.size() : 0);
  }

 private:
  static constexpr std::string_view prefix = "##";  // of a token that continues a word

  static bool is_left_out(std::string_view character) {
    static const Ranges left_out(description().left_out);
    return left_out.has(code_of(character));
  }
  template <class Test>
  static std::string without(std::string_view text, Test test) {
    std::string kept;
    for_each_character(text, [&](std::string_view character) {
      if (!test(character)) kept += character;
    });
    return kept;
  }

  /// The canonical decomposition without nonspacing marks, in lower case; a capital sigma at the
  /// end of a word becomes U+03C2.
  static std::string lower_without_accents(std::string_view text) {
    static const Ranges accents(description().accents);
    const std::u32string codes = normalization().decomposed(text);
    std::u32string result;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      if (accents.has(codes[i])) continue;
      result += codes[i] == U'\u03A3' && ends_word(codes, i) ? U'\u03C2' : lower_case(codes[i]);
    }
    return utf8(result);
  }
  static char32_t lower_case(char32_t code) {
    static const std::map<char32_t, char32_t> lower = [] {
      const std::u32string codes = codes_of(bytes_of(description().lower));
      std::map<char32_t, char32_t> pairs;
      for (std::size_t i = 0; i + 1 < codes.size(); i += 2) pairs[codes[i]] = codes[i + 1];
      return pairs;
    }();
    const auto found = lower.find(code);
    return found == lower.end() ? code : found->second;
  }
  /// Final_Sigma (Unicode Standard, 3.13): a cased letter comes before and none after, both with
  /// ignorable characters between.
  static bool ends_word(const std::u32string& codes, std::size_t sigma) {
    static const Ranges cased(description().cased), ignorable(description().ignorable);
    std::size_t begin = sigma, end = sigma + 1;
    while (begin > 0 && ignorable.has(codes[begin - 1])) --begin;
    while (end < codes.size() && ignorable.has(codes[end])) ++end;
    const bool follows = begin > 0 && cased.has(codes[begin - 1]);
    return follows && !(end < codes.size() && cased.has(codes[end]));
  }
};

}  // namespace qkv_model
