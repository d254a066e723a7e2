#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <new>
#include <optional>
#include <queue>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "datasets/text.h"
#include "datasets/token_rules.h"

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

/// Learns merges from pieces, whose symbols lie in one row of cells. A cell is a character; a
/// symbol of several has its id in its first and its last cell. As each pair knows where it occurs,
/// a merge touches nothing but its occurrences: n characters take memory ~ n and time ~ n log n.
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
    lengths_.assign(tokens_.size(), 1);
    for (const std::string& token : tokens_)
      ids_.emplace(token, static_cast<std::int32_t>(ids_.size()));
    for (const auto& [piece, count] : pieces) add(piece, count);
    if (cells_.size() > std::numeric_limits<Position>::max()) throw std::length_error("cells");
    for (std::size_t at = 0; at < cells_.size(); ++at) count_pair(static_cast<Position>(at), 1);
    for (const auto& [pair, found] : pairs_) propose(pair, found.count);
  }

  std::vector<std::string> merged(Index merges) {
    const auto size = tokens_.size() + static_cast<std::size_t>(merges);
    while (tokens_.size() < size && !candidates_.empty()) {
      const Candidate best = candidates_.top();
      candidates_.pop();
      const Index count = pairs_[best.pair].count;
      if (count < best.count)
        propose(best.pair, count);
      else
        merge(best.pair);
    }
    return tokens_;
  }

 private:
  using Pair = std::uint64_t;  ///< both ids, the first above the second
  using Position = std::uint32_t;
  struct Cell {
    std::int32_t symbol;  ///< `none` inside of a symbol, between pieces, and for a character that
                          ///< is no token
    std::uint32_t piece;
  };
  struct Occurrences {
    Index count = 0;
    std::vector<Position> begins = {};  ///< where the pair has begun since it was last merged
  };
  /// The count may have fallen since.
  struct Candidate {
    Index count;
    Pair pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  void add(const std::string& text, Index count) {
    const auto piece = static_cast<std::uint32_t>(counts_.size());
    counts_.push_back(count);
    cells_.push_back({none, piece});
    for_each_character(text, [&](std::string_view c) {
      const auto found = ids_.find(std::string(c));
      cells_.push_back({found == ids_.end() ? none : found->second, piece});
    });
    cells_.push_back({none, piece});
  }

  std::int32_t& symbol(Position at) { return cells_[at].symbol; }
  /// The number of cells of a symbol.
  Position length(std::int32_t symbol) const {
    return symbol == none ? 1 : lengths_[static_cast<std::size_t>(symbol)];
  }

  /// The symbol that begins at a position and the next one, where both are tokens.
  std::optional<Pair> pair_at(Position begin) const {
    const std::int32_t a = cells_[begin].symbol;
    if (a == none) return std::nullopt;
    const std::int32_t b = cells_[begin + length(a)].symbol;
    if (b == none) return std::nullopt;
    return static_cast<Pair>(a) << 32 | static_cast<Pair>(b);
  }

  /// Counts the pair at a position, or with sign -1 no longer.
  void count_pair(Position begin, Index sign) {
    const auto pair = pair_at(begin);
    if (!pair) return;
    Occurrences& found = pairs_[*pair];
    found.count += sign * counts_[cells_[begin].piece];
    if (sign > 0) found.begins.push_back(begin);
  }

  void propose(Pair pair, Index count) {
    if (count >= least_) candidates_.push({count, pair});
  }

  void merge(Pair pair) {
    const auto a = static_cast<std::int32_t>(pair >> 32),
               b = static_cast<std::int32_t>(pair & 0xFFFFFFFF);
    const std::string text =
        tokens_[static_cast<std::size_t>(a)] + tokens_[static_cast<std::size_t>(b)];
    const auto [known, is_new] = ids_.emplace(text, static_cast<std::int32_t>(tokens_.size()));
    const std::int32_t id = known->second;
    if (id < first_byte + byte_count) return;  // the text spells a token that is no text
    if (is_new) {
      tokens_.push_back(text);
      lengths_.push_back(length(a) + length(b));
    }
    std::vector<Position> begins = std::exchange(pairs_[pair].begins, {});
    std::ranges::sort(begins);  // of occurrences that overlap the first is merged
    std::vector<Pair> grown;
    for (const Position begin : begins) {
      if (symbol(begin) != a || symbol(begin + length(a)) != b) continue;  // merged otherwise since
      const Position before = begin - length(symbol(begin - 1)), next = begin + length(a);
      for (const Position changed : {before, begin, next}) count_pair(changed, -1);
      symbol(next - 1) = symbol(next) = none;
      symbol(begin) = symbol(next + length(b) - 1) = id;
      for (const Position changed : {before, begin}) {
        count_pair(changed, 1);
        if (const auto counted = pair_at(changed)) grown.push_back(*counted);
      }
    }
    std::ranges::sort(grown);
    grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
    for (const Pair other : grown) propose(other, pairs_[other].count);
  }

  Index least_;
  std::vector<std::string> tokens_;
  std::vector<Position> lengths_;  ///< of the tokens, in characters
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<Index> counts_;  ///< of the pieces
  std::vector<Cell> cells_;
  std::unordered_map<Pair, Occurrences> pairs_;
  std::priority_queue<Candidate> candidates_;
};

[[noreturn]] void throw_out_of_memory(const Vocabulary::Counts& pieces) {
  throw Error(
      fmt::format("not enough memory to learn byte pairs from {} distinct words; lower "
                  "task.merges, or train on less text",
                  pieces.size()));
}

/// Adds the ids of a piece: its characters, of which the adjacent two whose text is the token with
/// the lowest id are merged until there are none. A character that is no token becomes its bytes.
void encode_byte_pairs(std::string_view piece, const Vocabulary& vocabulary,
                       std::vector<std::int32_t>& ids) {
  std::vector<std::int32_t> symbols;
  for_each_character(piece, [&](std::string_view c) {
    if (const auto id = vocabulary.id(c); id != Vocabulary::unknown)
      symbols.push_back(id);
    else
      std::ranges::transform(c, std::back_inserter(symbols), byte_id);
  });
  const auto is_text = [](std::int32_t id) { return id >= first_byte + byte_count; };
  const auto find = [&](std::int32_t first, std::int32_t second) -> std::optional<Merge> {
    if (!is_text(first) || !is_text(second)) return std::nullopt;
    const auto id = vocabulary.id(vocabulary.token(first) + vocabulary.token(second));
    return is_text(id) ? std::optional(Merge{id, id}) : std::nullopt;
  };
  append_merged(symbols, find, ids);
}

/// The byte that a token stands for, if it is one of "<0x00>" to "<0xFF>".
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  if (error != std::errc() || byte_token(static_cast<int>(value)) != token) return std::nullopt;
  return static_cast<char>(value);
}

class BytePairs final : public TokenRules {
 public:
  BytePairs()
      : TokenRules({.keeps_spaces = true, .leads_with_space = true, .divides_pieces = true}) {}

  std::size_t piece_length(std::string_view text) const override {
    // In bytes; longer words are cut, as they are in the vocabularies of checkpoints.
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
    for (int byte = 0; byte < byte_count; ++byte)
      require<FileError>(first_byte + byte < vocabulary.size() &&
                             vocabulary.token(first_byte + byte) == byte_token(byte),
                         "the checkpoint's /vocabulary/tokens has no {} at {}; task.tokenizer "
                         "\"bpe\" needs it",
                         byte_token(byte), first_byte + byte);
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

}  // namespace

const TokenRules& byte_pair_rules() {
  static const BytePairs rules;
  return rules;
}

std::vector<std::string> byte_pair_tokens(const Vocabulary::Counts& pieces, Index min_count,
                                          Index merges) {
  try {
    return Learner(pieces, min_count).merged(merges);
  } catch (const std::bad_alloc&) {
    throw_out_of_memory(pieces);
  } catch (const std::length_error&) {  // more characters than positions
    throw_out_of_memory(pieces);
  }
}

}  // namespace qkv
