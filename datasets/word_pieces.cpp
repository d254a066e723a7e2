#include "datasets/word_pieces.h"

#include <algorithm>

#include "core/error.h"
#include "datasets/text.h"
#include "datasets/token_rules.h"
#include "datasets/unicode.h"

namespace qkv {
namespace {

/// The beginning of a token that continues a word.
constexpr std::string_view word_piece_prefix = "##";
constexpr Index longest_word = 100;  // in characters; longer ones are unknown

/// A text without malformed bytes, control characters and U+FFFD; with `lower_case` in lower case
/// and without accents. Tabs and line ends stay.
std::string without_controls(std::string_view text, bool lower_case) {
  std::string kept;
  for_each_character(text, [&](std::string_view character) {
    const auto [length, code] = first_code_point(character);
    if (length > 0 && !is_no_word_piece(code)) kept += character;
  });
  return lower_case ? lower_without_accents(kept) : kept;
}

/// The number of bytes of the first word of a text that begins with no white space: a punctuation
/// mark, an ideograph, or what comes before the next of these or white space.
std::size_t basic_word_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const std::string_view character = first_character(text.substr(length));
    const char32_t code = first_code_point(character).code;
    if (is_word_of_its_own(code)) return length == 0 ? character.size() : length;
    if (is_space(code)) break;
    length += character.size();
  }
  return length;
}

/// Adds the ids of a word: of its longest beginning that is a token, then of the longest beginning
/// of the rest that is one behind "##", and so on. The unknown token where there is none, or the
/// word has more than 100 characters.
void encode_word_pieces(std::string_view word, const Vocabulary& vocabulary,
                        std::vector<std::int32_t>& ids) {
  const std::size_t before = ids.size();
  std::vector<std::size_t> ends;  // of the characters
  for_each_character(word, [&](std::string_view character) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + character.size());
  });
  std::size_t begin = 0, used = 0;  // bytes and characters
  const auto id_up_to = [&](std::size_t end) {
    const std::string_view text = word.substr(begin, end - begin);
    return vocabulary.id(begin == 0 ? std::string(text)
                                    : std::string(word_piece_prefix) + std::string(text));
  };
  while (used < ends.size() && std::ssize(ends) <= longest_word) {
    std::size_t next = ends.size();
    while (next > used && vocabulary.is_unknown(id_up_to(ends[next - 1]))) --next;
    if (next == used) break;
    ids.push_back(id_up_to(ends[next - 1]));
    begin = ends[next - 1];
    used = next;
  }
  if (used == ends.size()) return;
  ids.resize(before);
  ids.push_back(Vocabulary::unknown);
}

class WordPieces final : public TokenRules {
 public:
  WordPieces() : TokenRules({.divides_pieces = true, .first = "[CLS]", .last = "[SEP]"}) {}

  std::string prepared(std::string_view text, bool lower_case) const override {
    return without_controls(text, lower_case);
  }
  /// White space that is a control character to BERT parts no words.
  std::vector<std::string> words_of(std::string_view sentence) const override {
    std::string kept;
    for_each_character(sentence, [&](std::string_view character) {
      const char32_t code = first_code_point(character).code;
      if (!is_white(code) || !is_no_word_piece(code)) kept += character;
    });
    return words(kept);
  }
  std::size_t piece_length(std::string_view text) const override {
    return std::max(basic_word_length(text), first_character(text).size());
  }
  bool is_left_out(std::string_view piece) const override {
    return is_space(first_code_point(piece).code);
  }
  void require_tokens(const Vocabulary& vocabulary) const override {
    for (const std::string_view token : {traits.first, traits.last})
      require<FileError>(!vocabulary.is_unknown(vocabulary.id(token)),
                         "the vocabulary has no {}, with which task.tokenizer \"wordpiece\" begins "
                         "or ends a sentence",
                         token);
  }
  void encode(std::string_view piece, const Tokenizer& tokenizer,
              std::vector<std::int32_t>& ids) const override {
    encode_word_pieces(piece, tokenizer.vocabulary(), ids);
  }
  void append(std::string& text, const std::string& token) const override {
    if (token.starts_with(word_piece_prefix))
      text += token.substr(word_piece_prefix.size());
    else
      TokenRules::append(text, token);
  }
};

}  // namespace

bool is_word_of_its_own(char32_t code) {
  return is_punctuation(code) || is_ideograph(code);
}

bool is_no_word_piece(char32_t code) {
  constexpr char32_t replacement = 0xFFFD;
  const bool stays = code == '\t' || code == '\n' || code == '\r';
  return code == replacement || (is_control(code) && !stays);
}

const TokenRules& word_piece_rules() {
  static const WordPieces rules;
  return rules;
}

}  // namespace qkv
