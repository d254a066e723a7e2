#include "datasets/byte_level.h"

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "datasets/text.h"
#include "datasets/token_rules.h"
#include "datasets/unicode.h"

namespace qkv {
namespace {

constexpr int bytes = 256;
constexpr char32_t first_substitute = 0x100;

bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

enum class Class { letter, number, space, other };

Class class_of(std::string_view character) {
  const auto [length, code] = first_code_point(character);
  if (length == 0) return Class::other;
  return is_letter(code)   ? Class::letter
         : is_number(code) ? Class::number
         : is_space(code)  ? Class::space
                           : Class::other;
}

/// The characters of one class that a text begins with: their bytes, and the bytes of the last.
struct Run {
  std::size_t length = 0, last = 0;
};

Run run_of(std::string_view text, Class kind) {
  Run run;
  while (run.length < text.size()) {
    const std::string_view character = first_character(text.substr(run.length));
    if (class_of(character) != kind) break;
    run = {run.length + character.size(), character.size()};
  }
  return run;
}

/// The number of bytes of the first piece of a text, which is not empty, by the pattern
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t byte_level_piece(std::string_view text) {
  for (const std::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(contraction)) return contraction.size();
  const std::size_t begin = text.starts_with(' ') ? 1 : 0;
  const std::string_view rest = text.substr(begin);
  const Class kind = rest.empty() ? Class::space : class_of(rest);
  if (kind != Class::space) return begin + run_of(rest, kind).length;
  // White space but for its last character, which belongs to what follows.
  const Run run = run_of(text, Class::space);
  return run.length == text.size() || run.length == run.last ? run.length : run.length - run.last;
}

/// The bytes of printable characters; a character that stands for no byte stays as it is.
std::string bytes_of_printable(std::string_view text) {
  std::string result;
  for_each_character(text, [&](std::string_view character) {
    const auto found = std::ranges::find(printable_bytes(), first_code_point(character).code);
    if (found == printable_bytes().end())
      result += character;
    else
      result += static_cast<char>(found - printable_bytes().begin());
  });
  return result;
}

class ByteLevel final : public TokenRules {
 public:
  ByteLevel() : TokenRules({.keeps_spaces = true, .divides_pieces = true, .lists_merges = true}) {}

  std::string prepared(std::string_view text, bool lower_case) const override {
    return lower_case ? lower(text) : std::string(text);
  }
  std::size_t piece_length(std::string_view text) const override { return byte_level_piece(text); }
  void encode(std::string_view piece, const Tokenizer& tokenizer,
              std::vector<std::int32_t>& ids) const override {
    tokenizer.merges()->encode(piece, ids);
  }
  void append(std::string& text, const std::string& token) const override {
    text += bytes_of_printable(token);
  }
};

}  // namespace

const std::array<char32_t, 256>& printable_bytes() {
  static const std::array<char32_t, bytes> table = [] {
    std::array<char32_t, bytes> codes = {};
    char32_t substitute = first_substitute;
    for (int byte = 0; byte < bytes; ++byte)
      codes[static_cast<std::size_t>(byte)] =
          stands_for_itself(byte) ? static_cast<char32_t>(byte) : substitute++;
    return codes;
  }();
  return table;
}

const TokenRules& byte_level_rules() {
  static const ByteLevel rules;
  return rules;
}

ByteMerges::ByteMerges(std::vector<std::string> merges, const Vocabulary& vocabulary)
    : texts_(std::move(merges)) {
  const auto id_of = [&](std::string_view token) {
    const auto id = vocabulary.find(token);
    require<FileError>(id.has_value(), "the vocabulary has no token \"{}\"", token);
    return *id;
  };
  std::unordered_set<std::int32_t> made;
  for (const char32_t code : printable_bytes()) {
    byte_ids_.push_back(id_of(utf8(code)));
    made.insert(byte_ids_.back());
  }
  for (std::size_t i = 0; i < texts_.size(); ++i) try {
      const std::string& text = texts_[i];
      const auto space = text.find(' ');
      require<FileError>(space != text.npos && text.find(' ', space + 1) == text.npos,
                         "the merge \"{}\" must be two tokens with a space between them", text);
      const std::string first = text.substr(0, space), second = text.substr(space + 1);
      const std::int32_t a = id_of(first), b = id_of(second), both = id_of(first + second);
      require<FileError>(made.contains(a) && made.contains(b),
                         "the merge \"{}\" comes before those that make its parts", text);
      require<FileError>(made.insert(both).second,
                         "the merge \"{}\" makes a token that an earlier one makes", text);
      merges_.emplace(pair_of(a, b), Merge{static_cast<std::int32_t>(merges_.size()), both});
    } catch (const FileError& error) {
      throw MergeError(error.what(), i);
    }
}

void append_merged(std::span<const std::int32_t> symbols, const FindMerge& find,
                   std::vector<std::int32_t>& ids) {
  constexpr std::int32_t merged = -1;
  struct Token {
    std::int32_t id;
    std::size_t before, after;  // neighbours
  };
  const std::size_t size = symbols.size();
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < size; ++i) tokens.push_back({symbols[i], i - 1, i + 1});
  using Candidate = std::tuple<std::int32_t, std::size_t, std::int32_t, std::int32_t, std::int32_t>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto propose = [&](std::size_t i) {
    if (i >= size || tokens[i].after >= size) return;
    const std::int32_t first = tokens[i].id, second = tokens[tokens[i].after].id;
    if (const auto merge = find(first, second))
      candidates.emplace(merge->rank, i, first, second, merge->id);
  };
  for (std::size_t i = 0; i < size; ++i) propose(i);
  while (!candidates.empty()) {
    const auto [rank, i, first, second, id] = candidates.top();
    candidates.pop();
    const std::size_t next = tokens[i].after;
    if (tokens[i].id != first || next >= size || tokens[next].id != second) continue;
    tokens[i] = {id, tokens[i].before, tokens[next].after};
    tokens[next].id = merged;
    if (tokens[i].after < size) tokens[tokens[i].after].before = i;
    propose(tokens[i].before);
    propose(i);
  }
  for (const Token& token : tokens)
    if (token.id != merged) ids.push_back(token.id);
}

void ByteMerges::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
  std::vector<std::int32_t> symbols;
  for (const char c : piece) symbols.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  const auto find = [&](std::int32_t first, std::int32_t second) {
    const auto found = merges_.find(pair_of(first, second));
    return found == merges_.end() ? std::nullopt : std::optional(found->second);
  };
  append_merged(symbols, find, ids);
}

}  // namespace qkv
