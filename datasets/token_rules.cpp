#include "datasets/token_rules.h"

#include "core/error.h"
#include "datasets/text.h"
#include "datasets/unicode.h"

namespace qkv {
namespace {

class Words final : public TokenRules {
 public:
  Words() : TokenRules(Traits()) {}

  std::string prepared(std::string_view text, bool lower_case) const override {
    return with_plain_apostrophes(TokenRules::prepared(text, lower_case));
  }
  std::size_t piece_length(std::string_view text) const override { return word_length(text); }
  bool is_left_out(std::string_view piece) const override { return begins_with_white(piece); }
  void encode(std::string_view piece, const Tokenizer& tokenizer,
              std::vector<std::int32_t>& ids) const override {
    ids.push_back(tokenizer.vocabulary().find(piece).value_or(Vocabulary::unknown));
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
  switch (kind) {
    case TokenizerKind::word:
      return words;
    case TokenizerKind::character:
      return characters;
    case TokenizerKind::bpe:
      return byte_pair_rules();
    case TokenizerKind::word_piece:
      return word_piece_rules();
    case TokenizerKind::byte_level:
      return byte_level_rules();
  }
  return words;
}

}  // namespace qkv
