#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/kinds.h"
#include "datasets/byte_level.h"
#include "datasets/vocabulary.h"

namespace qkv {

enum class TokenizerKind { word, character, bpe, word_piece, byte_level };
inline constexpr auto tokenizer_kinds = std::to_array<Kind<TokenizerKind>>({
    {TokenizerKind::word, "word", "words and punctuation marks"},
    {TokenizerKind::character, "char", "characters"},
    {TokenizerKind::bpe, "bpe", "byte-pair encoding, learned from the training data"},
    {TokenizerKind::word_piece, "wordpiece", "WordPiece of an imported BERT"},
    {TokenizerKind::byte_level, "byte-level", "byte-level byte-pair encoding of an imported GPT-2"},
});
static_assert(lists_every_kind(tokenizer_kinds));

/// Whether the tokens are those of an imported model, rather than learned from the training data.
constexpr bool is_imported(TokenizerKind kind) {
  return kind == TokenizerKind::word_piece || kind == TokenizerKind::byte_level;
}

/// How a text is cut into pieces, which no token reaches across:
///
///     word   words and punctuation marks; white space is left out
///     char   characters
///     bpe    words and punctuation marks, each with the space before it; other white space
///     wordpiece   words, ideographs and punctuation marks (datasets/word_pieces.h)
///     byte-level  words, numbers, other characters, each with the space before it; other white
///                 space (datasets/byte_level.h)
///
/// With `ngrams` above 1 the n-grams of the pieces of `word`, joined by spaces as in "not good",
/// are pieces that follow them: first those of two, then those of three.
///
/// The pieces of `char`, `bpe` and `byte-level` are the whole text. The kinds that are learned read
/// characters composed (NFC), `word` also curly apostrophes inside words as plain ones; what parts
/// their words is `is_white` and `is_mark`.
struct Cutting {
  TokenizerKind kind = TokenizerKind::word;
  bool lower_case = true;  ///< A to Z become a to z; of `wordpiece` all letters, without accents
  Index ngrams = 1;        ///< of `word`: length of the longest n-gram, see below

  friend bool operator==(const Cutting&, const Cutting&) = default;
};

/// The pieces of a text.
std::vector<std::string> pieces_of(std::string_view text, const Cutting& cutting);

/// A sentence in pieces, with the position of each white-space separated word among them: its first
/// piece that is no punctuation mark; -1 where nothing of the word is left, as of one of control
/// characters in `wordpiece`.
struct CutSentence {
  std::vector<std::string> pieces;
  std::vector<Index> positions;
};
/// White space counts as one space, and a sentence of `bpe` begins with one, so that a word has the
/// same tokens wherever it stands. One of `wordpiece` is between [CLS] and [SEP].
CutSentence cut_sentence(std::string_view sentence, const Cutting& cutting);
/// Cuts a sentence whose words are given; a word may have white space inside.
CutSentence cut_sentence(std::span<const std::string> words, const Cutting& cutting);
/// The pieces of a part of a sentence, without the tokens that begin and end a sentence.
CutSentence cut_phrase(std::string_view sentence, const Cutting& cutting);

/// The first position from `begin` on where the pieces of a phrase are among others, apart from
/// spaces before them; the number of pieces where they are not.
Index find_phrase(std::span<const std::string> pieces, std::span<const std::string> phrase,
                  Index begin = 0);

/// Counts the pieces of texts.
class PieceCounter {
 public:
  explicit PieceCounter(const Cutting& cutting) : cutting_(cutting) {}
  void add(std::string_view text);
  PieceCounter& operator+=(const PieceCounter& other);
  Vocabulary::Counts counts() const { return {pieces_.begin(), pieces_.end()}; }

 private:
  Cutting cutting_;
  std::unordered_map<std::string, Index, StringHash, std::equal_to<>> pieces_;
};

/// Options of learning tokens from the pieces of the training data.
struct LearnOptions {
  Index min_count = 1;  ///< of a piece, and in `bpe` of a character
  Index merges = 1000;  ///< of `bpe`, at most

  friend bool operator==(const LearnOptions&, const LearnOptions&) = default;
};

class TokenRules;

/// Turns text into ids and back. What `word` and `char` have not seen in training becomes the
/// unknown token, and so does a word of `wordpiece` that no tokens make up. `bpe` and `byte-level`
/// have a token for each byte, so that any bytes are encoded and decoded without loss, unless
/// letters became lower case or were composed.
class Tokenizer {
 public:
  /// `merges` are those of `byte-level`, see `ByteMerges`. Throws FileError when the tokens are not
  /// of this kind.
  Tokenizer(const Cutting& cutting, std::vector<std::string> tokens,
            std::vector<std::string> merges = {});
  /// The vocabulary of pieces that occur at least `min_count` times; for `bpe`, of bytes, such
  /// characters and at most `merges` byte-pair merges (`byte_pair_tokens`). Tokens that are
  /// `known`, as `Vocabulary::tokens` gives them, come first; with them `bpe` learns no others.
  /// Throws as the constructor.
  static Tokenizer learn(const Cutting& cutting, const Vocabulary::Counts& pieces,
                         const LearnOptions& options, const std::vector<std::string>& known = {});
  /// The vocabulary of the pieces of one text, as above.
  static Tokenizer learn(std::string_view text, const Cutting& cutting = {},
                         const LearnOptions& options = {});

  const Cutting& cutting() const noexcept { return cutting_; }
  const Vocabulary& vocabulary() const noexcept { return vocabulary_; }
  /// Null but for `byte-level`.
  const ByteMerges* merges() const noexcept { return merges_ ? &*merges_ : nullptr; }
  /// How many tokens begin every sentence, and end it.
  Index special_tokens() const noexcept;
  /// Whether a piece or token is an n-gram of words.
  bool is_ngram(std::string_view piece) const noexcept;
  /// Whether a token stands for text, rather than for an unknown one or an end of a sentence.
  bool is_text(std::int32_t id) const;

  /// The ids of a text.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// Adds the ids of a text, or of one piece, to `ids`.
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const;
  void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) const;
  /// The tokens of a piece as texts; an unknown one as the text has it.
  std::vector<std::string> tokens_of(const std::string& piece) const;
  /// Words are joined by spaces, and so are those of `wordpiece`; n-grams are left out.
  std::string decode(std::span<const std::int32_t> ids) const;
  /// Tokens of the kind, or pieces, as one text.
  std::string joined(std::span<const std::string> tokens) const;

 private:
  Cutting cutting_;
  const TokenRules* rules_;
  Vocabulary vocabulary_;
  std::optional<ByteMerges> merges_;  ///< of `byte-level`
};

/// Encodes long texts as `Tokenizer::encode` does. Remembers the tokens of pieces that have
/// several, which take long to find and occur again and again.
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
