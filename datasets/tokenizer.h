#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/kinds.h"
#include "datasets/vocabulary.h"

namespace qkv {

enum class TokenizerKind { word, character, bpe };
inline constexpr auto tokenizer_kinds = std::to_array<Kind<TokenizerKind>>({
    {TokenizerKind::word, "word", "words and punctuation marks"},
    {TokenizerKind::character, "char", "characters"},
    {TokenizerKind::bpe, "bpe", "byte-pair encoding, learned from the training data"},
});
static_assert(lists_every_kind(tokenizer_kinds));

/// How a text is cut into pieces, which no token reaches across:
///
///     word   words and punctuation marks; white space is left out
///     char   characters
///     bpe    words and punctuation marks, each with the space before it; other white space
///
/// The pieces of `char` and `bpe` are the whole text.
struct Cutting {
  TokenizerKind kind = TokenizerKind::word;
  bool lower_case = true;  ///< A to Z become a to z

  friend bool operator==(const Cutting&, const Cutting&) = default;
};

/// The pieces of a text.
std::vector<std::string> pieces_of(std::string_view text, const Cutting& cutting);

/// A sentence in pieces, with the position of each white-space separated word among them: its first
/// piece that is no punctuation mark.
struct CutSentence {
  std::vector<std::string> pieces;
  std::vector<Index> positions;
};
/// White space counts as one space, and a sentence of `bpe` begins with one, so that a word has the
/// same tokens wherever it stands.
CutSentence cut_sentence(std::string_view sentence, const Cutting& cutting);

/// Counts the pieces of texts.
class PieceCounter {
 public:
  explicit PieceCounter(const Cutting& cutting) : cutting_(cutting) {}
  void add(std::string_view text);
  PieceCounter& operator+=(const PieceCounter& other);
  Vocabulary::Counts counts() const;

 private:
  Cutting cutting_;
  std::vector<Index> characters_;  ///< by code point, of `char`
  std::unordered_map<std::string, Index, StringHash, std::equal_to<>> pieces_;
};

/// Turns text into ids and back. What `word` and `char` have not seen in training becomes the
/// unknown token; `bpe` has a token for each byte, so that any bytes are encoded and decoded
/// without loss, unless letters became lower case.
class Tokenizer {
 public:
  /// Throws FileError when the vocabulary is not one of this kind.
  Tokenizer(const Cutting& cutting, Vocabulary vocabulary);
  /// The vocabulary of pieces that occur at least `min_count` times; for `bpe`, of bytes, such
  /// characters and at most `merges` byte-pair merges (`byte_pair_tokens`). Tokens that are
  /// `known`, as `Vocabulary::tokens` gives them, come first; with them `bpe` learns no others.
  /// Throws as the constructor.
  static Tokenizer learn(const Cutting& cutting, Vocabulary::Counts pieces, Index min_count,
                         Index merges, const std::vector<std::string>& known = {});

  const Cutting& cutting() const noexcept { return cutting_; }
  const Vocabulary& vocabulary() const noexcept { return vocabulary_; }

  /// Adds the ids of a text, or of one piece, to `ids`.
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const;
  void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) const;
  /// The tokens of a piece as texts; an unknown one as the text has it.
  std::vector<std::string> tokens_of(const std::string& piece) const;
  /// Words are joined by spaces.
  std::string decode(std::span<const std::int32_t> ids) const;
  /// Tokens of the kind, or pieces, as one text.
  std::string joined(std::span<const std::string> tokens) const;

 private:
  Cutting cutting_;
  Vocabulary vocabulary_;
  std::vector<std::int32_t> by_code_point_;  ///< of `char`: ids up to the largest known
};

/// Encodes long texts as `Tokenizer::encode` does. Remembers the tokens of pieces of `bpe`, which
/// take long to find and occur again and again.
class TextEncoder {
 public:
  /// The tokenizer must outlive it.
  explicit TextEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  void encode(std::string_view text, std::vector<std::int32_t>& ids);

 private:
  const Tokenizer& tokenizer_;
  std::unordered_map<std::string, std::vector<std::int32_t>, StringHash, std::equal_to<>> known_;
};

}  // namespace qkv
