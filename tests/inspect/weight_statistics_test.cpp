#include "inspect/weight_statistics.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/errors.h"

using namespace qkv;

TEST_CASE("statistics of a few values are those of a textbook") {
  const Statistics s = statistics(Tensor::from({0, 1, 2, 5}, {4}));
  CHECK(s.norm == doctest::Approx(std::sqrt(30)));
  CHECK(s.mean == 2);
  CHECK(s.std == doctest::Approx(std::sqrt(3.5)));
  CHECK(s.min == 0);
  CHECK(s.max == 5);
  CHECK(s.zeros == 0.25);
  CHECK(s.histogram[0] == 1);
  CHECK(s.histogram[3] == 1);
  CHECK(s.histogram[6] == 1);
  CHECK(s.histogram[15] == 1);
}

TEST_CASE("a constant tensor falls into one bin and deviates by nothing") {
  const Statistics s = statistics(Tensor::full({3, 2}, 0.1));
  CHECK(s.histogram[0] == 6);
  CHECK(s.std == doctest::Approx(0));
}

TEST_CASE("changes list what moved most first, relative to where it was") {
  Parameter a(Tensor::from({3, 4}, {2})), a0(Tensor::from({3, 0}, {2}));
  Parameter b(Tensor::from({100, 1}, {2})), b0(Tensor::from({100, 0}, {2}));
  const std::vector<NamedParameter> now = {{"b", &b}, {"a", &a}, {"new", &a}};
  const auto all = changes(now, {{"a", &a0}, {"b", &b0}});
  REQUIRE(all.size() == 2);
  CHECK(all[0].path == "a");
  CHECK(all[0].distance == 4);
  CHECK(all[0].relative() == doctest::Approx(4.0 / 3));
  CHECK(all[0].cosine == doctest::Approx(0.6));
  CHECK(all[1].relative() == doctest::Approx(0.01));
}

TEST_CASE("parameters of different shape cannot be compared and are named with both shapes") {
  Parameter a(Tensor::zeros({2})), b(Tensor::zeros({3}));
  const std::vector<NamedParameter> now = {{"w", &a}}, before = {{"w", &b}};
  CHECK(error_of<ShapeError>([&] { changes(now, before); }) ==
        "w has shape (2,) in one model and (3,) in the other");
}
