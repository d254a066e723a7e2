#pragma once

#include <array>

#include "datasets/tokenizer.h"

namespace qkv {

/// The rules of a kind of tokenizer: how a text is cut into pieces, how a piece becomes tokens, and
/// tokens a text. A class for each kind.
class TokenRules {
 public:
  struct Traits {
    bool keeps_spaces = false;               ///< the pieces of a text are all of it
    bool leads_with_space = false;           ///< a sentence begins with a space
    bool divides_pieces = false;             ///< a piece may have several tokens
    std::string_view first = {}, last = {};  ///< tokens that begin and end a sentence
    bool lists_merges = false;  ///< tokens come with `ByteMerges`, and none is reserved
  };

  explicit TokenRules(const Traits& is) : traits(is) {}
  virtual ~TokenRules() = default;

  /// A text as it is read: by default composed (NFC), with A to Z in lower case where `lower_case`
  /// says so.
  virtual std::string prepared(std::string_view text, bool lower_case) const;
  /// The words of a sentence between white space.
  virtual std::vector<std::string> words_of(std::string_view sentence) const;
  /// The number of bytes of a text's first piece; the text is not empty.
  virtual std::size_t piece_length(std::string_view text) const = 0;
  /// Whether a piece is white space that is left out.
  virtual bool is_left_out([[maybe_unused]] std::string_view piece) const { return false; }

  virtual std::vector<std::string> learned(const Vocabulary::Counts& pieces,
                                           const LearnOptions& options,
                                           const std::vector<std::string>& known) const;
  /// Throws FileError when a vocabulary is of another kind.
  virtual void require_tokens(const Vocabulary&) const {}
  /// Adds the ids of a piece to `ids`: by default the id of the token that it is.
  virtual void encode(std::string_view piece, const Tokenizer& tokenizer,
                      std::vector<std::int32_t>& ids) const;
  /// Adds a token to a text.
  virtual void append(std::string& text, const std::string& token) const;

  const Traits traits;
};

const TokenRules& rules_of(TokenizerKind kind);
const TokenRules& byte_pair_rules();
const TokenRules& word_piece_rules();
const TokenRules& byte_level_rules();

/// The bytes as the printable characters of `byte-level`: those of Latin-1 that are no spaces or
/// controls stand for themselves, the others are U+0100 and the following codes in order.
const std::array<char32_t, 256>& printable_bytes();

/// The tokens of byte-pair encoding (Sennrich et al. 2016, "Neural Machine Translation of Rare
/// Words with Subword Units"): those of every vocabulary, a token for each byte ("<0x00>" to
/// "<0xFF>"), the characters that occur at least `min_count` times, and `merges` merges: again and
/// again the most frequent pair of adjacent tokens becomes one. A merge needs a pair that occurs
/// twice and `min_count` times. The order is that of the merges; equally frequent pairs are merged
/// in the order of their ids.
std::vector<std::string> byte_pair_tokens(const Vocabulary::Counts& pieces, Index min_count,
                                          Index merges);

}  // namespace qkv
