#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace qkv {

/// How much of a head's attention goes to a pattern of attention, which names the head
/// (TransformerLens, `detect_head`): the weights of the keys that match it, mean over the queries
/// that have such a key.
struct PatternScore {
  std::string_view pattern;     ///< "previous token"
  std::optional<double> score;  ///< none when no query had such a key
};

/// The scores of one head over sentences.
class HeadScores {
 public:
  /// Adds a sentence: weights and mask [T, T], mask 1 where the key is visible to the query, and
  /// the ids of its tokens.
  void add(const Tensor& weights, const Tensor& mask, std::span<const std::int32_t> ids);

  /// Scores of the token before the query ("previous token"), after it ("next token") and the first
  /// of the sentence ("first token"), of other occurrences of the query's token ("same token") and
  /// of what followed earlier ones ("induction", Olsson et al. 2022).
  std::vector<PatternScore> scores() const;
  /// The pattern with the highest score, where that is above 1/2.
  std::optional<std::string_view> name() const;

 private:
  struct Mean {
    double sum = 0;
    double queries = 0;
  };
  std::array<Mean, 5> means_;
};

}  // namespace qkv
