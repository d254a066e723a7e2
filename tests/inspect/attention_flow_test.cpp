#include "inspect/attention_flow.h"

#include <doctest/doctest.h>

using namespace qkv;

TEST_CASE("rollout multiplies half attention, half identity, through the layers") {
  const Matrix first = {{0, 1}, {1, 0}}, second = {{1, 0}, {1, 0}};
  // Layer 1: [[.5, .5], [.5, .5]]; layer 2: [[1, 0], [.5, .5]].
  const Matrix flow = rollout({{first}, {second}});
  CHECK(flow == Matrix{{0.5, 0.5}, {0.5, 0.5}});
  CHECK(rollout({{second}}) == Matrix{{1, 0}, {0.5, 0.5}});
}

TEST_CASE("rollout takes the mean of a layer's heads") {
  const Matrix a = {{1, 0}, {1, 0}}, b = {{0, 1}, {0, 1}};
  CHECK(rollout({{a, b}}) == Matrix{{0.75, 0.25}, {0.25, 0.75}});
}

TEST_CASE("entropy is 0 bits for one word and log2 T for all alike") {
  CHECK(entropy({{1, 0, 0, 0}}) == 0);
  CHECK(entropy({{0.25, 0.25, 0.25, 0.25}}) == doctest::Approx(2));
  CHECK(entropy({{1, 0}, {0.5, 0.5}}) == doctest::Approx(0.5));
}

TEST_CASE("habits tell where a head looks") {
  const HeadHabits at = habits({{0, 1, 0}, {0, 0, 1}, {0.5, 0.25, 0.25}});
  CHECK(at.next == doctest::Approx(2.0 / 3));
  CHECK(at.previous == doctest::Approx(0.25 / 3));
  CHECK(at.self == doctest::Approx(0.25 / 3));
  CHECK(at.first == doctest::Approx(0.5 / 3));
  CHECK(at.last == doctest::Approx(1.25 / 3));
  CHECK(at.distance == doctest::Approx((1 + 1 + 1 + 0.25) / 3));
  const HeadHabits mean = mean_habits({at, habits({{1}})});
  CHECK(mean.self == doctest::Approx((0.25 / 3 + 1) / 2));
}

TEST_CASE("the variance of scores leaves out what the mask hides") {
  const Tensor scores = Tensor::from(std::vector{1.0, 3.0, 100.0, 2.0, 2.0, 5.0}, {2, 3});
  const Tensor mask = Tensor::from(std::vector{1.0, 1.0, 0.0, 1.0, 1.0, 1.0}, {2, 3});
  HeadSteps head;
  head.scaled = scores;
  head.weights = Tensor::from(std::vector{0.5, 0.5, 0.0, 0.25, 0.25, 0.5}, {2, 3});
  const HeadHabits at = habits({.path = "attention", .scale = 1, .mask = mask, .heads = {head}}, 0);
  CHECK(at.score_variance == doctest::Approx((1 + 2) / 2.0));
  CHECK(at.first == habits(Matrix{{0.5, 0.5, 0}, {0.25, 0.25, 0.5}}).first);
}
