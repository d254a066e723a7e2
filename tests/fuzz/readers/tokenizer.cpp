// Tokenizers that are learned from a text, or that a checkpoint holds. The parts of an input: how
// the text is cut, the text to learn from, further tokens as lines, and a text to encode.
#include "datasets/tokenizer.h"

#include <algorithm>

#include "core/error.h"
#include "datasets/text.h"
#include "datasets/unicode.h"
#include "tests/fuzz/readers/input.h"

namespace qkv::fuzz {
namespace {

void check(const Tokenizer& tokenizer, std::string_view text) {
  const Cutting& cutting = tokenizer.cutting();
  std::vector<std::int32_t> ids, ids_of_pieces;
  tokenizer.encode(text, ids);
  for (const std::int32_t id : ids)
    demand(id > Vocabulary::padding && id < tokenizer.vocabulary().size());
  const auto pieces = pieces_of(text, cutting);
  for (const std::string& piece : pieces) tokenizer.encode_piece(piece, ids_of_pieces);
  demand(ids == ids_of_pieces);

  // Known tokens come back.
  const bool is_known = std::ranges::find(ids, Vocabulary::unknown) == ids.end();
  const std::string decoded = tokenizer.decode(ids),
                    expected = cutting.lower_case ? lower(composed(text)) : composed(text);
  switch (cutting.kind) {
    case TokenizerKind::word:
      demand(!is_known || pieces_of(decoded, cutting) == pieces);
      break;
    case TokenizerKind::character:
      demand(!is_known || !is_utf8(text) || decoded == expected);
      break;
    case TokenizerKind::bpe:
      demand(is_known && decoded == expected);
      break;
    case TokenizerKind::word_piece:  // see huggingface.cpp
    case TokenizerKind::byte_level:
      break;
  }

  const CutSentence sentence = cut_sentence(text, cutting);
  demand(sentence.positions.size() == words(text).size());
  for (const Index position : sentence.positions)
    demand(position >= 0 && position < std::ssize(sentence.pieces));
}

}  // namespace

void read(std::span<const std::byte> input) {
  const auto parts = parts_of(input, 4);
  const auto how = parts[0].empty() ? 0 : std::to_integer<unsigned>(parts[0][0]);
  constexpr std::size_t learned_kinds = 3;  // before those of imported models
  const TokenizerKind kind = tokenizer_kinds[how % learned_kinds].value;
  const Cutting cutting{.kind = kind,
                        .lower_case = how / 4 % 2 == 0,
                        .ngrams = kind == TokenizerKind::word ? 1 + how / 16 % 4 : 1};
  const std::string_view text = text_of(parts[3]);
  PieceCounter counter(cutting);
  counter.add(text_of(parts[1]));
  const Tokenizer learned =
      Tokenizer::learn(cutting, counter.counts(), {.min_count = 1 + how / 8 % 2, .merges = 16});
  check(learned, text);
  if (cutting.kind == TokenizerKind::bpe) check(learned, text_of(input));

  std::vector<std::string> tokens = learned.vocabulary().tokens(), further(1);
  for (const char c : text_of(parts[2]))
    if (c == '\n')
      further.emplace_back();
    else
      further.back() += c;
  tokens.insert(tokens.end(), further.begin(), further.end());
  check(Tokenizer(cutting, tokens), text);
}

}  // namespace qkv::fuzz
