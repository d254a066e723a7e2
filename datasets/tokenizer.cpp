#include "datasets/tokenizer.h"

#include <algorithm>
#include <utility>

#include "datasets/text.h"
#include "datasets/token_rules.h"

namespace qkv {
namespace {

template <class F>
void for_each_piece(std::string_view text, const TokenRules& rules, F f) {
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, rules.piece_length(text));
    if (!rules.is_left_out(piece)) f(piece);
    text.remove_prefix(piece.size());
  }
}

/// Appends the n-grams of words.
void add_ngrams(std::vector<std::string>& pieces, Index longest) {
  const std::size_t count = pieces.size();
  for (std::size_t n = 2; n <= static_cast<std::size_t>(longest); ++n)
    for (std::size_t begin = 0; begin + n <= count; ++begin) {
      std::string ngram = pieces[begin];
      for (std::size_t i = begin + 1; i < begin + n; ++i) ngram += ' ' + pieces[i];
      pieces.push_back(std::move(ngram));
    }
}

/// Calls `f` for the pieces of a text as it is read.
template <class F>
void for_each_piece(std::string_view text, const Cutting& cutting, F f) {
  const TokenRules& rules = rules_of(cutting.kind);
  const std::string whole = rules.prepared(text, cutting.lower_case);
  if (cutting.ngrams == 1) return for_each_piece(whole, rules, f);
  std::vector<std::string> pieces;
  for_each_piece(whole, rules, [&](std::string_view piece) { pieces.emplace_back(piece); });
  add_ngrams(pieces, cutting.ngrams);
  for (const std::string& piece : pieces) f(std::string_view(piece));
}

std::string_view without_space(std::string_view piece) {
  return piece.substr(piece.starts_with(' ') ? 1 : 0);
}

/// Whether a piece is a word or a part of one.
bool names_something(std::string_view piece) {
  const std::string_view text = without_space(piece);
  return !text.empty() && !is_one_mark(text);
}

CutSentence cut_words(std::span<const std::string> words, const Cutting& cutting) {
  const TokenRules& rules = rules_of(cutting.kind);
  CutSentence cut;
  for (const std::string& whole : words) {
    const std::string word = rules.prepared(whole, cutting.lower_case);
    const bool spaced =
        rules.traits.leads_with_space || (rules.traits.keeps_spaces && !cut.pieces.empty());
    const Index begin = std::ssize(cut.pieces);
    for_each_piece(spaced ? " " + word : word, rules,
                   [&](std::string_view piece) { cut.pieces.emplace_back(piece); });
    const auto first = cut.pieces.begin() + begin;
    const auto named = std::find_if(first, cut.pieces.end(), names_something);
    const auto word_begin = named == cut.pieces.end() ? first : named;
    cut.positions.push_back(first == cut.pieces.end() ? -1 : word_begin - cut.pieces.begin());
  }
  return cut;
}

/// Adds what a whole sentence begins and ends with, and n-grams.
CutSentence completed(CutSentence cut, const Cutting& cutting) {
  const TokenRules::Traits& traits = rules_of(cutting.kind).traits;
  add_ngrams(cut.pieces, cutting.ngrams);
  if (traits.first.empty() || cut.positions.empty()) return cut;
  cut.pieces.emplace(cut.pieces.begin(), traits.first);
  cut.pieces.emplace_back(traits.last);
  for (Index& position : cut.positions)
    if (position >= 0) ++position;
  return cut;
}

}  // namespace

std::vector<std::string> pieces_of(std::string_view text, const Cutting& cutting) {
  std::vector<std::string> pieces;
  for_each_piece(text, cutting, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

CutSentence cut_phrase(std::string_view sentence, const Cutting& cutting) {
  return cut_words(rules_of(cutting.kind).words_of(sentence), cutting);
}

CutSentence cut_sentence(std::string_view sentence, const Cutting& cutting) {
  return completed(cut_phrase(sentence, cutting), cutting);
}

CutSentence cut_sentence(std::span<const std::string> words, const Cutting& cutting) {
  return completed(cut_words(words, cutting), cutting);
}

Index find_phrase(std::span<const std::string> pieces, std::span<const std::string> phrase,
                  Index begin) {
  const auto rest = pieces.subspan(static_cast<std::size_t>(begin));
  const auto equal = [](const std::string& a, const std::string& b) {
    return without_space(a) == without_space(b);
  };
  const auto found = std::search(rest.begin(), rest.end(), phrase.begin(), phrase.end(), equal);
  return phrase.empty() ? std::ssize(pieces) : found - pieces.begin();
}

void PieceCounter::add(std::string_view text) {
  for_each_piece(text, cutting_, [&](std::string_view piece) {
    if (const auto found = pieces_.find(piece); found != pieces_.end())
      ++found->second;
    else
      pieces_.emplace(piece, 1);
  });
}

PieceCounter& PieceCounter::operator+=(const PieceCounter& other) {
  for (const auto& [piece, count] : other.pieces_) pieces_[piece] += count;
  return *this;
}

Tokenizer::Tokenizer(const Cutting& cutting, std::vector<std::string> tokens,
                     std::vector<std::string> merges)
    : cutting_(cutting),
      rules_(&rules_of(cutting.kind)),
      vocabulary_(std::move(tokens), rules_->traits.lists_merges
                                         ? ReservedIds::none
                                         : ReservedIds::padding_and_unknown) {
  rules_->require_tokens(vocabulary_);
  if (rules_->traits.lists_merges) merges_.emplace(std::move(merges), vocabulary_);
}

Tokenizer Tokenizer::learn(const Cutting& cutting, const Vocabulary::Counts& pieces,
                           const LearnOptions& options, const std::vector<std::string>& known) {
  return {cutting, rules_of(cutting.kind).learned(pieces, options, known)};
}

Tokenizer Tokenizer::learn(std::string_view text, const Cutting& cutting,
                           const LearnOptions& options) {
  PieceCounter pieces(cutting);
  pieces.add(text);
  return learn(cutting, pieces.counts(), options);
}

Index Tokenizer::special_tokens() const noexcept {
  return !rules_->traits.first.empty();
}

bool Tokenizer::is_ngram(std::string_view piece) const noexcept {
  return cutting_.ngrams > 1 && piece.find(' ') != piece.npos;
}

bool Tokenizer::is_text(std::int32_t id) const {
  if (vocabulary_.is_unknown(id)) return false;
  const std::string& token = vocabulary_.token(id);
  return token != rules_->traits.first && token != rules_->traits.last;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  TextEncoder(*this).encode(text, ids);
  return ids;
}

void Tokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  for_each_piece(text, cutting_, [&](std::string_view piece) { encode_piece(piece, ids); });
}

void Tokenizer::encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) const {
  rules_->encode(piece, *this, ids);
}

std::vector<std::string> Tokenizer::tokens_of(const std::string& piece) const {
  if (!rules_->traits.divides_pieces) return {piece};
  std::vector<std::int32_t> ids;
  encode_piece(piece, ids);
  if (ids.size() == 1 && vocabulary_.is_unknown(ids.front())) return {piece};
  return vocabulary_.tokens(ids);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  return joined(vocabulary_.tokens(ids));
}

std::string Tokenizer::joined(std::span<const std::string> tokens) const {
  std::string text;
  for (const std::string& token : tokens)
    if (!is_ngram(token)) rules_->append(text, token);
  return text;
}

void TextEncoder::encode(std::string_view text, std::vector<std::int32_t>& ids) {
  constexpr std::size_t most_pieces = std::size_t{1} << 16;
  const Cutting& cutting = tokenizer_.cutting();
  if (!rules_of(cutting.kind).traits.divides_pieces) return tokenizer_.encode(text, ids);
  for_each_piece(text, cutting, [&](std::string_view piece) {
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
