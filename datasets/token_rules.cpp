#include "datasets/token_rules.h"

#include <algorithm>

#include "core/error.h"
#include "datasets/byte_pairs.h"
#include "datasets/text.h"
#include "datasets/unicode.h"
#include "datasets/word_pieces.h"

namespace qkv {
namespace {

bool begins_with_letter(std::string_view text) {
  if (text.empty()) return false;
  const char32_t code = first_code_point(text).code;
  return !is_white(code) && !is_mark(code);
}

/// The number of bytes of a word, which may have marks inside, or else of one character.
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

class Words final : public TokenRules {
 public:
  Words() : TokenRules({}) {}

  std::size_t piece_length(std::string_view text) const override { return word_length(text); }
  bool is_left_out(std::string_view piece) const override { return begins_with_white(piece); }
  std::vector<std::string> learned(const Vocabulary::Counts& pieces, const LearnOptions& options,
                                   const std::vector<std::string>& known) const override {
    const auto tokens = TokenRules::learned(pieces, options, known);
    return options.stems ? with_stems(tokens, pieces) : tokens;
  }
  void encode(std::string_view piece, const Tokenizer& tokenizer,
              std::vector<std::int32_t>& ids) const override {
    const auto id = tokenizer.vocabulary().find(piece);
    ids.push_back(id ? *id : tokenizer.unlisted_id(piece));
  }
};

class Characters final : public TokenRules {
 public:
  Characters() : TokenRules({.keeps_spaces = true}) {}

  std::size_t piece_length(std::string_view text) const override {
    return first_character(text).size();
  }
  void require_tokens(const Vocabulary& vocabulary) const override {
    for (std::int32_t id = vocabulary.reserved(); id < vocabulary.size(); ++id) {
      const std::string& token = vocabulary.token(id);
      require<FileError>(!token.empty() && first_code_point(token).length == token.size(),
                         "the checkpoint's /vocabulary/tokens has \"{}\", which is no character",
                         token);
    }
  }
};

class BytePairs final : public TokenRules {
 public:
  BytePairs()
      : TokenRules({.keeps_spaces = true, .leads_with_space = true, .divides_pieces = true}) {}

  std::size_t piece_length(std::string_view text) const override {
    // Bytes; encoding a piece takes time that grows with the square of its length.
    constexpr std::size_t longest = 64;
    const bool leads = text[0] == ' ' && text.size() > 1 && !begins_with_white(text.substr(1));
    const std::size_t begin = leads ? 1 : 0;
    std::size_t length = begin + word_length(text.substr(begin));
    if (length <= longest) return length;
    for (length = longest; (text[length] & 0xC0) == 0x80 && length > begin + 1; --length) {
    }
    return length;
  }
  std::vector<std::string> learned(const Vocabulary::Counts& pieces, const LearnOptions& options,
                                   const std::vector<std::string>& known) const override {
    return known.empty() ? byte_pair_tokens(pieces, options.min_count, options.merges) : known;
  }
  void require_tokens(const Vocabulary& vocabulary) const override {
    require_byte_tokens(vocabulary);
  }
  void encode(std::string_view piece, const Tokenizer& tokenizer,
              std::vector<std::int32_t>& ids) const override {
    encode_byte_pairs(piece, tokenizer.vocabulary(), ids);
  }
  void append(std::string& text, const std::string& token) const override {
    if (const auto byte = byte_of(token))
      text += *byte;
    else
      text += token;
  }
};

class WordPieces final : public TokenRules {
 public:
  WordPieces() : TokenRules({.divides_pieces = true, .has_ends = true}) {}

  std::string prepared(std::string_view text, bool lower_case) const override {
    return without_controls(text, lower_case);
  }
  /// White space that is a control character to BERT parts no words.
  std::vector<std::string> words_of(std::string_view sentence) const override {
    std::string kept;
    for_each_character(sentence, [&](std::string_view character) {
      const char32_t code = first_code_point(character).code;
      const bool stays = code == '\t' || code == '\n' || code == '\r';
      if (stays || !is_white(code) || !is_control(code)) kept += character;
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
    require_word_pieces(vocabulary);
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

class ByteLevel final : public TokenRules {
 public:
  ByteLevel() : TokenRules({.keeps_spaces = true, .divides_pieces = true, .lists_merges = true}) {}

  std::string prepared(std::string_view text, bool lower_case) const override {
    return lower_case ? lower(text) : std::string(text);
  }
  std::size_t piece_length(std::string_view text) const override { return byte_level_piece(text); }
  void encode(std::string_view piece, const Tokenizer& tokenizer,
              std::vector<std::int32_t>& ids) const override {
    tokenizer.merges()->encode(piece, ids);
  }
  void append(std::string& text, const std::string& token) const override {
    text += bytes_of_printable(token);
  }
};

}  // namespace

std::string TokenRules::prepared(std::string_view text, bool lower_case) const {
  return lower_case ? lower(composed(text)) : composed(text);
}

std::vector<std::string> TokenRules::words_of(std::string_view sentence) const {
  return words(sentence);
}

std::vector<std::string> TokenRules::learned(const Vocabulary::Counts& pieces,
                                             const LearnOptions& options,
                                             const std::vector<std::string>& known) const {
  return Vocabulary::build(pieces, options.min_count, known).tokens();
}

void TokenRules::encode(std::string_view piece, const Tokenizer& tokenizer,
                        std::vector<std::int32_t>& ids) const {
  ids.push_back(tokenizer.vocabulary().id(piece));
}

void TokenRules::append(std::string& text, const std::string& token) const {
  if (!traits.keeps_spaces && !text.empty()) text += ' ';
  text += token;
}

const TokenRules& rules_of(TokenizerKind kind) {
  static const Words words;
  static const Characters characters;
  static const BytePairs byte_pairs;
  static const WordPieces word_pieces;
  static const ByteLevel byte_level;
  switch (kind) {
    case TokenizerKind::word:
      return words;
    case TokenizerKind::character:
      return characters;
    case TokenizerKind::bpe:
      return byte_pairs;
    case TokenizerKind::word_piece:
      return word_pieces;
    case TokenizerKind::byte_level:
      return byte_level;
  }
  return words;
}

}  // namespace qkv
