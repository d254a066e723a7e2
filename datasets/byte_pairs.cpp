#include "datasets/byte_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <queue>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "datasets/text.h"

namespace qkv {
namespace {

constexpr std::int32_t first_byte = Vocabulary::unknown + 1, byte_count = 256;
constexpr std::int32_t none = -1;

std::string byte_token(int byte) {
  return fmt::format("<0x{:02X}>", byte);
}

std::int32_t byte_id(char c) {
  return first_byte + static_cast<unsigned char>(c);
}

/// Learns merges from pieces, each a sequence of ids.
class Learner {
 public:
  Learner(const Vocabulary::Counts& pieces, Index min_count)
      : least_(std::max<Index>(min_count, 2)) {
    Vocabulary::Counts characters;
    for (const auto& [piece, count] : pieces)
      for_each_character(piece,
                         [&, n = count](std::string_view c) { characters[std::string(c)] += n; });
    tokens_ = Vocabulary::build(std::move(characters), min_count).tokens();
    std::vector<std::string> fallback;
    fallback.reserve(byte_count);
    for (int byte = 0; byte < byte_count; ++byte) fallback.push_back(byte_token(byte));
    tokens_.insert(tokens_.begin() + first_byte, fallback.begin(), fallback.end());
    for (const std::string& token : tokens_)
      ids_.emplace(token, static_cast<std::int32_t>(ids_.size()));
    for (const auto& [piece, count] : pieces) add(piece, count);
  }

  std::vector<std::string> merged(Index merges) {
    const auto size = tokens_.size() + static_cast<std::size_t>(merges);
    while (tokens_.size() < size && !candidates_.empty()) {
      const Candidate best = candidates_.top();
      candidates_.pop();
      const Index count = pairs_[best.pair].count;
      if (count < best.count) {
        if (count >= least_) candidates_.push({count, best.pair});
      } else {
        merge(best.pair);
      }
    }
    return tokens_;
  }

 private:
  using Pair = std::uint64_t;  ///< both ids, the first above the second
  struct Piece {
    std::vector<std::int32_t> symbols;  ///< ids; `none` for a character that is no token
    Index count;
  };
  struct Occurrences {
    Index count = 0;
    std::vector<std::uint32_t> pieces = {};  ///< that have had the pair
  };
  /// The count may have fallen since.
  struct Candidate {
    Index count;
    Pair pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  static Pair pair_of(std::int32_t a, std::int32_t b) {
    return static_cast<Pair>(a) << 32 | static_cast<Pair>(b);
  }

  void add(const std::string& text, Index count) {
    Piece piece{{}, count};
    for_each_character(text, [&](std::string_view c) {
      const auto found = ids_.find(std::string(c));
      piece.symbols.push_back(found == ids_.end() ? none : found->second);
    });
    pieces_.push_back(std::move(piece));
    count_pairs(pieces_.size() - 1, 1);
  }

  /// Counts the pairs of a piece, or with sign -1 no longer.
  void count_pairs(std::size_t number, Index sign) {
    const Piece& piece = pieces_[number];
    for (std::size_t i = 0; i + 1 < piece.symbols.size(); ++i) {
      if (piece.symbols[i] == none || piece.symbols[i + 1] == none) continue;
      const Pair pair = pair_of(piece.symbols[i], piece.symbols[i + 1]);
      Occurrences& found = pairs_[pair];
      found.count += sign * piece.count;
      if (sign < 0) continue;
      if (found.pieces.empty() || found.pieces.back() != number)
        found.pieces.push_back(static_cast<std::uint32_t>(number));
      if (found.count >= least_) candidates_.push({found.count, pair});
    }
  }

  void merge(Pair pair) {
    const auto a = static_cast<std::int32_t>(pair >> 32),
               b = static_cast<std::int32_t>(pair & 0xFFFFFFFF);
    const std::string text =
        tokens_[static_cast<std::size_t>(a)] + tokens_[static_cast<std::size_t>(b)];
    const auto [known, is_new] = ids_.emplace(text, static_cast<std::int32_t>(tokens_.size()));
    const std::int32_t id = known->second;
    if (id < first_byte + byte_count) return;  // the text spells a token that is no text
    if (is_new) tokens_.push_back(text);
    for (const std::uint32_t number : std::exchange(pairs_[pair].pieces, {})) {
      count_pairs(number, -1);
      auto& symbols = pieces_[number].symbols;
      std::size_t kept = 0;
      for (std::size_t i = 0; i < symbols.size(); ++i) {
        const bool here = i + 1 < symbols.size() && symbols[i] == a && symbols[i + 1] == b;
        symbols[kept++] = here ? id : symbols[i];
        i += here;
      }
      symbols.resize(kept);
      count_pairs(number, 1);
    }
  }

  Index least_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<Piece> pieces_;
  std::unordered_map<Pair, Occurrences> pairs_;
  std::priority_queue<Candidate> candidates_;
};

}  // namespace

std::vector<std::string> byte_pair_tokens(const Vocabulary::Counts& pieces, Index min_count,
                                          Index merges) {
  return Learner(pieces, min_count).merged(merges);
}

void encode_byte_pairs(std::string_view piece, const Vocabulary& vocabulary,
                       std::vector<std::int32_t>& ids) {
  struct Symbol {
    std::size_t begin;
    std::int32_t id;
    bool is_byte;
  };
  std::vector<Symbol> symbols;
  for_each_character(piece, [&](std::string_view c) {
    const auto begin = static_cast<std::size_t>(c.data() - piece.data());
    if (const auto id = vocabulary.id(c); id != Vocabulary::unknown)
      symbols.push_back({begin, id, false});
    else
      for (std::size_t i = 0; i < c.size(); ++i)
        symbols.push_back({begin + i, byte_id(c[i]), true});
  });
  symbols.push_back({piece.size(), none, true});  // the end
  /// The id of symbols i and i + 1 as one token, or of none the largest.
  const auto merged = [&](std::size_t i) {
    constexpr auto no = std::numeric_limits<std::int32_t>::max();
    if (symbols[i].is_byte || symbols[i + 1].is_byte) return no;
    const std::size_t begin = symbols[i].begin;
    const auto id = vocabulary.id(piece.substr(begin, symbols[i + 2].begin - begin));
    return id >= first_byte + byte_count ? id : no;
  };
  std::vector<std::int32_t> merges;
  for (std::size_t i = 0; i + 2 < symbols.size(); ++i) merges.push_back(merged(i));
  const auto offset = [](std::size_t i) { return static_cast<std::ptrdiff_t>(i); };
  while (!merges.empty()) {
    const auto best = std::ranges::min_element(merges);
    if (*best == std::numeric_limits<std::int32_t>::max()) break;
    const auto i = static_cast<std::size_t>(best - merges.begin());
    symbols[i].id = *best;
    symbols.erase(symbols.begin() + offset(i + 1));
    merges.erase(best);
    if (i > 0) merges[i - 1] = merged(i - 1);
    if (i < merges.size()) merges[i] = merged(i);
  }
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) ids.push_back(symbols[i].id);
}

std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  if (error != std::errc() || byte_token(static_cast<int>(value)) != token) return std::nullopt;
  return static_cast<char>(value);
}

void require_byte_tokens(const Vocabulary& vocabulary) {
  for (int byte = 0; byte < byte_count; ++byte)
    require<FileError>(first_byte + byte < vocabulary.size() &&
                           vocabulary.token(first_byte + byte) == byte_token(byte),
                       "the checkpoint's /vocabulary/tokens has no {} at {}; task.tokenizer "
                       "\"bpe\" needs it",
                       byte_token(byte), first_byte + byte);
}

}  // namespace qkv
