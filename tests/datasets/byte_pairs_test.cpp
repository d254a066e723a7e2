#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "core/random.h"
#include "datasets/text.h"
#include "datasets/token_rules.h"

using namespace qkv;

namespace {

using Tokens = std::vector<std::string>;
using Counts = Vocabulary::Counts;

/// Byte pairs by the definition: all pairs are counted anew for each merge.
Tokens naive_tokens(const Counts& pieces, Index min_count, Index merges) {
  Tokens tokens = byte_pair_tokens(pieces, min_count, 0);
  constexpr std::size_t first_text = 2 + 256;  // after padding, unknown and the bytes
  const auto size = tokens.size() + static_cast<std::size_t>(merges);
  const auto id_of = [&](const std::string& text) {
    return static_cast<std::size_t>(std::ranges::find(tokens, text) - tokens.begin());
  };
  std::vector<std::pair<Tokens, Index>> words;
  for (const auto& [piece, count] : pieces) words.emplace_back(characters(piece), count);
  while (tokens.size() < size) {
    std::map<std::pair<std::size_t, std::size_t>, Index> counts;
    for (const auto& [symbols, count] : words)
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
        counts[{id_of(symbols[i]), id_of(symbols[i + 1])}] += count;
    std::erase_if(counts, [&](const auto& counted) {
      const auto [a, b] = counted.first;
      return a == tokens.size() || b == tokens.size() || id_of(tokens[a] + tokens[b]) < first_text;
    });
    const auto best = std::ranges::max_element(
        counts, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == counts.end() || best->second < std::max<Index>(min_count, 2)) break;
    const std::string first = tokens[best->first.first], second = tokens[best->first.second];
    if (id_of(first + second) == tokens.size()) tokens.push_back(first + second);
    for (auto& [symbols, count] : words)
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
        if (symbols[i] == first && symbols[i + 1] == second) {
          symbols[i] += second;
          symbols.erase(symbols.begin() + static_cast<Index>(i + 1));
        }
  }
  return tokens;
}

/// Words over a few letters, some of them drawn again with other words around them.
Counts drawn_pieces(const Random& random) {
  std::uint64_t drawn = 0;
  const auto below = [&](std::uint32_t end) { return random.bits(drawn++) % end; };
  const std::string letters = "aab<0x41>é";
  const auto characters_of = characters(letters);
  const std::uint32_t kinds = 1 + below(static_cast<std::uint32_t>(characters_of.size()));
  Counts pieces;
  std::string stretch;
  for (std::uint32_t word = 1 + below(12); word > 0; --word) {
    std::string piece = below(3) ? "" : stretch;
    for (std::uint32_t length = below(20); length > 0; --length)
      piece += characters_of[below(kinds)];
    if (below(2)) piece += stretch;
    pieces[piece] += 1 + below(5);
    stretch = piece.size() < 60 ? piece : "";
  }
  return pieces;
}

}  // namespace

TEST_CASE("drawn texts have the byte pairs of the definition") {
  for (std::uint64_t i = 0; i < 300; ++i) {
    CAPTURE(i);
    const Counts pieces = drawn_pieces(Random(i, Purpose::testing));
    const Index min_count = 1 + static_cast<Index>(i % 4);
    REQUIRE(byte_pair_tokens(pieces, min_count, 60) == naive_tokens(pieces, min_count, 60));
  }
}

TEST_CASE("words that share a long stretch have the byte pairs of the definition") {
  const std::string word = "the quick brown foxes jump over";
  const Counts pieces = {{word, 1}, {word + "s", 1}, {"so " + word, 1}, {" " + word, 1}};
  CHECK(byte_pair_tokens(pieces, 1, 1000) == naive_tokens(pieces, 1, 1000));
}

TEST_CASE("byte pairs of words as long as a text take time near the number of letters") {
  const Random random(1, Purpose::testing);
  std::string long_word;
  for (std::uint64_t i = 0; i < 1'000'000; ++i) long_word += "ACGT"[random.bits(i) % 4];
  const Tokens tokens =
      byte_pair_tokens({{long_word, 1}, {std::string(1'000'000, 'N'), 1}}, 1, 1000);
  CHECK(tokens.size() == 2 + 256 + 5 + 1000);
  CHECK(std::ranges::find(tokens, std::string(1 << 10, 'N')) != tokens.end());
}
