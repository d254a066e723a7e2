#include "datasets/tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "datasets/byte_pairs.h"
#include "datasets/text.h"
#include "datasets/unicode.h"
#include "datasets/word_pieces.h"

namespace qkv {
namespace {

/// Of a piece of `bpe`, in bytes: encoding one takes time that grows with the square.
constexpr std::size_t longest_piece = 64;
/// That a TextEncoder remembers.
constexpr std::size_t most_pieces = std::size_t{1} << 16;

/// A text as the tokenizer reads it.
std::string prepared(std::string_view text, const Cutting& cutting) {
  if (cutting.kind == TokenizerKind::word_piece) return without_controls(text, cutting.lower_case);
  const std::string whole = is_imported(cutting.kind) ? std::string(text) : composed(text);
  return cutting.lower_case ? lower(whole) : whole;
}

/// Whether a piece may have several tokens.
bool divides_pieces(TokenizerKind kind) {
  return kind != TokenizerKind::word && kind != TokenizerKind::character;
}

/// Whether the pieces of a text are all of it.
bool keeps_spaces(TokenizerKind kind) {
  return kind != TokenizerKind::word && kind != TokenizerKind::word_piece;
}

bool begins_with_letter(std::string_view text) {
  if (text.empty()) return false;
  const char32_t code = first_code_point(text).code;
  return !is_white(code) && !is_mark(code);
}

/// The number of bytes up to the next white space or punctuation mark, but for marks inside words.
std::size_t word_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const std::string_view rest = text.substr(length), character = first_character(rest);
    const bool is_inside = length > 0 && is_inner_mark(first_code_point(rest).code) &&
                           begins_with_letter(rest.substr(character.size()));
    if (!begins_with_letter(rest) && !is_inside) break;
    length += character.size();
  }
  return length;
}

/// `text` begins with no white space.
std::size_t word_piece(std::string_view text) {
  return std::max(word_length(text), first_character(text).size());
}

std::size_t byte_pair_piece(std::string_view text) {
  const std::size_t begin =
      text[0] == ' ' && text.size() > 1 && !begins_with_white(text.substr(1)) ? 1 : 0;
  const std::string_view rest = text.substr(begin);
  if (begins_with_white(rest)) return begin + first_character(rest).size();
  std::size_t length = begin + word_piece(rest);
  if (length <= longest_piece) return length;
  for (length = longest_piece; (text[length] & 0xC0) == 0x80 && length > begin + 1; --length) {
  }
  return length;
}

/// The number of bytes of the first piece, or of white space that is left out.
std::size_t piece_length(std::string_view text, TokenizerKind kind) {
  switch (kind) {
    case TokenizerKind::word:
      return word_piece(text);
    case TokenizerKind::character:
      return first_character(text).size();
    case TokenizerKind::bpe:
      return byte_pair_piece(text);
    case TokenizerKind::word_piece:
      return std::max(basic_word_length(text), first_character(text).size());
    case TokenizerKind::byte_level:
      return byte_level_piece(text);
  }
  return text.size();
}

bool begins_with_space(std::string_view text) {
  return is_space(first_code_point(text).code);
}

template <class F>
void for_each_piece(std::string_view text, TokenizerKind kind, F f) {
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, piece_length(text, kind));
    if (keeps_spaces(kind) ||
        !(kind == TokenizerKind::word ? begins_with_white(piece) : begins_with_space(piece)))
      f(piece);
    text.remove_prefix(piece.size());
  }
}

/// Whether a piece is a word or a part of one.
bool names_something(std::string_view piece) {
  if (piece.starts_with(' ')) piece.remove_prefix(1);
  return !piece.empty() && !is_one_mark(piece);
}

/// A text without the white space that is a control character to BERT.
std::string without_control_spaces(std::string_view text) {
  std::string kept;
  for_each_character(text, [&](std::string_view character) {
    const char32_t code = first_code_point(character).code;
    const bool stays = code == '\t' || code == '\n' || code == '\r';
    if (stays || !is_white(code) || !is_control(code)) kept += character;
  });
  return kept;
}

CutSentence cut_words(std::span<const std::string> words, const Cutting& cutting) {
  CutSentence cut;
  for (const std::string& whole : words) {
    const std::string word = prepared(whole, cutting);
    const bool spaced =
        cutting.kind == TokenizerKind::bpe || (keeps_spaces(cutting.kind) && !cut.pieces.empty());
    const Index begin = std::ssize(cut.pieces);
    for_each_piece(spaced ? " " + word : word, cutting.kind,
                   [&](std::string_view piece) { cut.pieces.emplace_back(piece); });
    const auto first = cut.pieces.begin() + begin;
    const auto named = std::find_if(first, cut.pieces.end(), names_something);
    cut.positions.push_back(first == cut.pieces.end()
                                ? -1
                                : (named == cut.pieces.end() ? first : named) - cut.pieces.begin());
  }
  return cut;
}

/// With what a whole sentence begins and ends with.
CutSentence with_ends(CutSentence cut, TokenizerKind kind) {
  if (kind != TokenizerKind::word_piece || cut.positions.empty()) return cut;
  cut.pieces.emplace(cut.pieces.begin(), first_word_piece);
  cut.pieces.emplace_back(last_word_piece);
  for (Index& position : cut.positions)
    if (position >= 0) ++position;
  return cut;
}

}  // namespace

std::vector<std::string> pieces_of(std::string_view text, const Cutting& cutting) {
  std::vector<std::string> pieces;
  for_each_piece(prepared(text, cutting), cutting.kind,
                 [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

CutSentence cut_phrase(std::string_view sentence, const Cutting& cutting) {
  if (cutting.kind == TokenizerKind::word_piece)
    return cut_words(words(without_control_spaces(sentence)), cutting);
  return cut_words(words(sentence), cutting);
}

CutSentence cut_sentence(std::string_view sentence, const Cutting& cutting) {
  return with_ends(cut_phrase(sentence, cutting), cutting.kind);
}

CutSentence cut_sentence(std::span<const std::string> words, const Cutting& cutting) {
  return with_ends(cut_words(words, cutting), cutting.kind);
}

void PieceCounter::add(std::string_view text) {
  const std::string whole = prepared(text, cutting_);
  for_each_piece(whole, cutting_.kind, [&](std::string_view piece) {
    if (cutting_.kind == TokenizerKind::character) {
      const std::size_t code = first_code_point(piece).code;
      if (code >= characters_.size()) characters_.resize(code + 1);
      ++characters_[code];
    } else if (const auto found = pieces_.find(piece); found != pieces_.end()) {
      ++found->second;
    } else {
      pieces_.emplace(piece, 1);
    }
  });
}

PieceCounter& PieceCounter::operator+=(const PieceCounter& other) {
  characters_.resize(std::max(characters_.size(), other.characters_.size()));
  for (std::size_t code = 0; code < other.characters_.size(); ++code)
    characters_[code] += other.characters_[code];
  for (const auto& [piece, count] : other.pieces_) pieces_[piece] += count;
  return *this;
}

Vocabulary::Counts PieceCounter::counts() const {
  Vocabulary::Counts counts(pieces_.begin(), pieces_.end());
  for (std::size_t code = 0; code < characters_.size(); ++code)
    if (characters_[code] > 0) counts[utf8(static_cast<char32_t>(code))] = characters_[code];
  return counts;
}

Tokenizer::Tokenizer(const Cutting& cutting, std::vector<std::string> tokens,
                     std::vector<std::string> merges)
    : cutting_(cutting),
      vocabulary_(std::move(tokens), cutting.kind == TokenizerKind::byte_level
                                         ? ReservedIds::none
                                         : ReservedIds::padding_and_unknown) {
  if (cutting_.kind == TokenizerKind::bpe) require_byte_tokens(vocabulary_);
  if (cutting_.kind == TokenizerKind::word_piece) require_word_pieces(vocabulary_);
  if (cutting_.kind == TokenizerKind::byte_level) merges_.emplace(std::move(merges), vocabulary_);
  if (cutting_.kind != TokenizerKind::character) return;
  for (std::int32_t id = Vocabulary::unknown + 1; id < vocabulary_.size(); ++id) {
    const std::string& token = vocabulary_.token(id);
    require<FileError>(!token.empty() && first_code_point(token).length == token.size(),
                       "the checkpoint's /vocabulary/tokens has \"{}\", which is no character",
                       token);
    const std::size_t code = first_code_point(token).code;
    if (code >= by_code_point_.size()) by_code_point_.resize(code + 1, Vocabulary::unknown);
    by_code_point_[code] = id;
  }
}

Tokenizer Tokenizer::learn(const Cutting& cutting, const Vocabulary::Counts& pieces,
                           const LearnOptions& options, const std::vector<std::string>& known) {
  if (cutting.kind == TokenizerKind::bpe)
    return {cutting,
            known.empty() ? byte_pair_tokens(pieces, options.min_count, options.merges) : known};
  return {cutting, Vocabulary::build(pieces, options.min_count, known).tokens()};
}

bool Tokenizer::is_text(std::int32_t id) const {
  if (vocabulary_.is_unknown(id)) return false;
  const std::string& token = vocabulary_.token(id);
  return cutting_.kind != TokenizerKind::word_piece ||
         (token != first_word_piece && token != last_word_piece);
}

void Tokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  const std::string whole = prepared(text, cutting_);
  for_each_piece(whole, cutting_.kind, [&](std::string_view piece) { encode_piece(piece, ids); });
}

void Tokenizer::encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) const {
  switch (cutting_.kind) {
    case TokenizerKind::word:
      ids.push_back(vocabulary_.find(piece).value_or(Vocabulary::unknown));
      return;
    case TokenizerKind::character: {
      const CodePoint c = first_code_point(piece);
      const bool known = c.length > 0 && c.code < by_code_point_.size();
      ids.push_back(known ? by_code_point_[c.code] : Vocabulary::unknown);
      return;
    }
    case TokenizerKind::bpe:
      encode_byte_pairs(piece, vocabulary_, ids);
      return;
    case TokenizerKind::word_piece:
      encode_word_pieces(piece, vocabulary_, ids);
      return;
    case TokenizerKind::byte_level:
      merges_->encode(piece, ids);
      return;
  }
}

std::vector<std::string> Tokenizer::tokens_of(const std::string& piece) const {
  if (!divides_pieces(cutting_.kind)) return {piece};
  std::vector<std::int32_t> ids;
  encode_piece(piece, ids);
  if (ids.size() == 1 && vocabulary_.is_unknown(ids.front())) return {piece};
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) tokens.push_back(vocabulary_.token(id));
  return tokens;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) tokens.push_back(vocabulary_.token(id));
  return joined(tokens);
}

std::string Tokenizer::joined(std::span<const std::string> tokens) const {
  std::string text;
  for (const std::string& token : tokens) {
    const bool continues =
        cutting_.kind == TokenizerKind::word_piece && token.starts_with(word_piece_prefix);
    if (!keeps_spaces(cutting_.kind) && !continues && !text.empty()) text += ' ';
    const auto byte = cutting_.kind == TokenizerKind::bpe ? byte_of(token) : std::nullopt;
    if (byte)
      text += *byte;
    else if (cutting_.kind == TokenizerKind::byte_level)
      text += bytes_of_printable(token);
    else
      text += continues ? token.substr(word_piece_prefix.size()) : token;
  }
  return text;
}

void TextEncoder::encode(std::string_view text, std::vector<std::int32_t>& ids) {
  const TokenizerKind kind = tokenizer_.cutting().kind;
  if (!divides_pieces(kind)) return tokenizer_.encode(text, ids);
  const std::string whole = prepared(text, tokenizer_.cutting());
  for_each_piece(whole, kind, [&](std::string_view piece) {
    auto found = known_.find(piece);
    if (found == known_.end()) {
      if (known_.size() == most_pieces) known_.clear();
      found = known_.emplace(piece, std::vector<std::int32_t>()).first;
      tokenizer_.encode_piece(piece, found->second);
    }
    ids.insert(ids.end(), found->second.begin(), found->second.end());
  });
}

}  // namespace qkv
