#pragma once

#include <cstddef>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "inspect/cpp_model/layers.h"
#include "inspect/cpp_model/unicode.h"

namespace qkv_model {

constexpr int unknown_id = 1;

/// The id of a token; that of the unknown token where it is not listed.
inline int id_of(std::string_view token) {
  static const std::unordered_map<std::string_view, int> ids = [] {
    std::unordered_map<std::string_view, int> by_token;
    for (const std::string_view text : description().tokens)
      by_token.emplace(text, static_cast<int>(by_token.size()));
    if (description().reserved > 0) by_token[description().tokens[0]] = unknown_id;
    return by_token;
  }();
  const auto found = ids.find(token);
  return found == ids.end() ? unknown_id : found->second;
}

inline bool is_unknown(int id) {
  return description().reserved > 0 && id == unknown_id;
}

inline std::string_view token_of(int id) {
  return description().tokens[static_cast<std::size_t>(id)];
}

/// The rules that a tokenizer has unless its class has others.
struct TokenRules {
  static constexpr bool keeps_spaces = false;               ///< the pieces of a text are all of it
  static constexpr bool leads_with_space = false;           ///< a sentence begins with a space
  static constexpr bool divides_pieces = false;             ///< a piece may have several tokens
  static constexpr std::string_view first = {}, last = {};  ///< begin and end a sentence

  static std::vector<std::string> words_of(std::string_view text) { return split(text); }
};

/// Calls `use` for the pieces of a text, which no token reaches across.
template <class Tokenizer, class Use>
void for_each_piece(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, Tokenizer::piece_length(text));
    if (Tokenizer::keeps_spaces || !begins_with_white(piece)) use(piece);
    text.remove_prefix(piece.size());
  }
}

/// Tokens as one text.
template <class Tokenizer>
std::string text_of(const Ids& ids) {
  std::string text;
  for (const int id : ids) Tokenizer::append(token_of(id), text);
  return text;
}

/// The token that replaces two adjacent ones; the pair of the lowest rank is merged first.
struct Merge {
  int rank, id;
};

/// Appends tokens, of which the adjacent pair with the lowest rank is merged, from left to right,
/// until there is none; `merge_of` has the merge of a pair, if any. Takes time n log n.
template <class MergeOf>
void append_merged(Ids tokens, const MergeOf& merge_of, Ids& ids) {
  constexpr int merged = -1;
  const std::size_t size = tokens.size();
  std::vector<std::size_t> before(size), after(size);  // neighbours
  using Candidate = std::tuple<int, std::size_t, int, int, int>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<Candidate>> candidates;
  const auto propose = [&](std::size_t i) {
    if (i >= size || after[i] >= size) return;
    const int first = tokens[i], second = tokens[after[i]];
    if (const auto merge = merge_of(first, second))
      candidates.emplace(merge->rank, i, first, second, merge->id);
  };
  for (std::size_t i = 0; i < size; ++i) {
    before[i] = i - 1;
    after[i] = i + 1;
    propose(i);
  }
  while (!candidates.empty()) {
    const auto [rank, i, first, second, id] = candidates.top();
    candidates.pop();
    const std::size_t next = after[i];
    if (tokens[i] != first || next >= size || tokens[next] != second) continue;
    tokens[i] = id;
    tokens[next] = merged;
    after[i] = after[next];
    if (after[i] < size) before[after[i]] = i;
    propose(before[i]);
    propose(i);
  }
  for (const int token : tokens)
    if (token != merged) ids.push_back(token);
}

}  // namespace qkv_model
