#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace qkv {

/// A pattern of attention, which names a head (TransformerLens, `detect_head`).
enum class HeadPattern {
  previous_token,  ///< the token before the query
  next_token,      ///< the one after it
  first_token,     ///< the first of the sentence
  same_token,      ///< other occurrences of the query's token
  induction,       ///< what followed earlier occurrences of it (Olsson et al. 2022)
};
inline constexpr std::size_t head_patterns = 5;
/// "previous token"
std::string_view to_string(HeadPattern pattern);

/// How much of a head's attention goes to each pattern: the weights of the keys that match it, mean
/// over the queries that have such a key.
class HeadScores {
 public:
  /// Adds a sentence: weights and mask [T, T], mask 1 where the key is visible to the query, and
  /// the ids of its tokens.
  void add(const Tensor& weights, const Tensor& mask, std::span<const std::int32_t> ids);

  /// None when no query had such a key.
  std::optional<double> score(HeadPattern pattern) const;
  /// The pattern with the highest score, where that is above 1/2.
  std::optional<HeadPattern> name() const;

 private:
  struct Mean {
    double sum = 0;
    double queries = 0;
  };
  std::array<Mean, head_patterns> means_;
};

}  // namespace qkv
