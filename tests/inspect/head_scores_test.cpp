#include "inspect/head_scores.h"

#include <doctest/doctest.h>

#include <vector>

using namespace qkv;

namespace {

constexpr std::size_t time = 5;
using Ids = std::vector<std::int32_t>;

/// A head whose query i gives all its attention to key `keys[i]`, without a mask or with a causal
/// one.
HeadScores scores_of(const std::vector<std::size_t>& keys, const Ids& ids, bool causal = false) {
  std::vector<double> weights(time * time), mask(time * time, 1);
  for (std::size_t i = 0; i < time; ++i) {
    weights[i * time + keys[i]] = 1;
    for (std::size_t j = i + 1; causal && j < time; ++j) mask[i * time + j] = 0;
  }
  const Shape shape{std::ssize(keys), std::ssize(keys)};
  HeadScores scores;
  scores.add(Tensor::from(weights, shape), Tensor::from(mask, shape), ids);
  return scores;
}

std::optional<double> score(const HeadScores& scores, std::string_view pattern) {
  for (const PatternScore& one : scores.scores())
    if (one.pattern == pattern) return one.score;
  throw ValueError("there is no such pattern");
}

const Ids repeated = {7, 8, 9, 7, 8};  // a b c a b

}  // namespace

TEST_CASE("a perfect head of each pattern scores 1 and gets its name") {
  const auto check = [](std::string_view pattern, const std::vector<std::size_t>& keys) {
    CAPTURE(pattern);
    const HeadScores scores = scores_of(keys, repeated);
    CHECK(score(scores, pattern) == 1);
    CHECK(scores.name() == pattern);
  };
  check("previous token", {0, 0, 1, 2, 3});
  check("next token", {1, 2, 3, 4, 4});
  check("first token", {0, 0, 0, 0, 0});
  check("same token", {3, 4, 2, 0, 1});
  check("induction", {0, 0, 0, 1, 2});
}

TEST_CASE("only queries that have a key of the pattern count") {
  // In a b c a b only the second a and b follow an occurrence.
  CHECK(score(scores_of({4, 4, 4, 1, 4}, repeated), "induction") == 0.5);
  CHECK_FALSE(score(scores_of({0, 0, 1, 2, 3}, {1, 2, 3, 4, 5}), "induction"));
  CHECK_FALSE(score(scores_of({0, 0, 1, 2, 3}, {1, 2, 3, 4, 5}), "same token"));
}

TEST_CASE("keys that the mask hides do not count") {
  const HeadScores causal = scores_of({0, 0, 0, 0, 1}, repeated, true);
  CHECK(score(causal, "same token") == 1);  // of the second a and b
  CHECK_FALSE(score(causal, "next token"));
}

TEST_CASE("a head without a pattern above one half has no name") {
  CHECK_FALSE(scores_of({2, 4, 2, 3, 2}, repeated).name());
}
