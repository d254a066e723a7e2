#include "inspect/attention_flow.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace qkv;

namespace {

Tensor matrix(const std::vector<double>& values, Index rows) {
  return Tensor::from(values, {rows, std::ssize(values) / rows}, DType::float64);
}

/// A layer of heads with two words each.
Tensor layer(const std::vector<double>& values) {
  return Tensor::from(values, {std::ssize(values) / 4, 2, 2}, DType::float64);
}

}  // namespace

TEST_CASE("rollout multiplies half attention, half identity, through the layers") {
  const Tensor first = layer({0, 1, 1, 0}), second = layer({1, 0, 1, 0});
  // Layer 1: [[.5, .5], [.5, .5]]; layer 2: [[1, 0], [.5, .5]].
  CHECK(rollout({first, second}).values() == std::vector<double>{0.5, 0.5, 0.5, 0.5});
  CHECK(rollout({second}).values() == std::vector<double>{1, 0, 0.5, 0.5});
}

TEST_CASE("rollout takes the mean of a layer's heads") {
  CHECK(rollout({layer({1, 0, 1, 0, 0, 1, 0, 1})}).values() ==
        std::vector<double>{0.75, 0.25, 0.25, 0.75});
}

TEST_CASE("entropy is 0 bits for one word and log2 T for all alike") {
  CHECK(entropy(matrix({1, 0, 0, 0}, 1)) == 0);
  CHECK(entropy(matrix({0.25, 0.25, 0.25, 0.25}, 1)) == doctest::Approx(2));
  CHECK(entropy(matrix({1, 0, 0.5, 0.5}, 2)) == doctest::Approx(0.5));
}

TEST_CASE("attention statistics tell what a head attends to") {
  const AttentionStatistics at =
      attention_statistics(matrix({0, 1, 0, 0, 0, 1, 0.5, 0.25, 0.25}, 3));
  CHECK(at.next == doctest::Approx(2.0 / 3));
  CHECK(at.previous == doctest::Approx(0.25 / 3));
  CHECK(at.self == doctest::Approx(0.25 / 3));
  CHECK(at.first == doctest::Approx(0.5 / 3));
  CHECK(at.last == doctest::Approx(1.25 / 3));
  CHECK(at.distance == doctest::Approx((1 + 1 + 1 + 0.25) / 3));
  const AttentionStatistics mean = mean_statistics({at, attention_statistics(matrix({1}, 1))});
  CHECK(mean.self == doctest::Approx((0.25 / 3 + 1) / 2));
}

TEST_CASE("a head that attends to one word has entropy 0, not -0") {
  CHECK_FALSE(std::signbit(entropy(matrix({0, 1, 0, 1}, 2))));
}

TEST_CASE("the variance of scores leaves out what the mask hides") {
  const Tensor scores = matrix({1, 3, 100, 2, 2, 5, 4, 4, 4}, 3);
  const Tensor mask = matrix({1, 1, 0, 1, 1, 1, 0, 0, 0}, 3);
  HeadSteps head;
  head.scaled = scores;
  head.weights = matrix({0.5, 0.5, 0, 0.25, 0.25, 0.5, 0, 0, 0}, 3);
  const AttentionStatistics at = attention_statistics(
      {.path = "attention", .cross = false, .scale = 1, .mask = mask, .heads = {head}}, 0);
  CHECK(at.score_variance == doctest::Approx((1 + 2 + 0) / 3.0));
  CHECK(at.first == doctest::Approx(0.75 / 3));
}
