#include "inspect/principal_components.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/ops.h"
#include "tests/support/randn.h"

using namespace qkv;

TEST_CASE("the first principal component lies along the longest direction") {
  // Points 3 t (0.6, 0.8) around (10, -4), with a small step across.
  std::vector<double> points;
  for (int t = -3; t <= 3; ++t) {
    const double along = 3 * t, across = t % 2 ? 0.1 : -0.1;
    points.push_back(10 + 0.6 * along - 0.8 * across);
    points.push_back(-4 + 0.8 * along + 0.6 * across);
  }
  const Tensor x = Tensor::from(points, {7, 2}, DType::float64);
  const auto found = principal_components(x, 2);
  const auto values = found.project(x).values();
  CHECK(values[0] == doctest::Approx(-9).epsilon(0.01));
  CHECK(values[12] == doctest::Approx(9).epsilon(0.01));
  CHECK(found.variance_fraction[0] > 0.99);
  CHECK(found.variance_fraction[0] + found.variance_fraction[1] == doctest::Approx(1));
}

TEST_CASE("principal components keep all distances when none is left out") {
  const Tensor points = tests::randn({5, 3});
  const Tensor projected = principal_components(points, 3).project(points);
  const auto distance = [](const Tensor& x, Index a, Index b) {
    const Tensor d = slice(x, 0, a, a + 1) - slice(x, 0, b, b + 1);
    return std::sqrt(sum(d * d).item());
  };
  for (Index a = 0; a < 5; ++a)
    for (Index b = 0; b < 5; ++b)
      CHECK(distance(projected, a, b) == doctest::Approx(distance(points, a, b)).epsilon(1e-5));
}

TEST_CASE("fewer points than dimensions give the same components, and 0 where they do not vary") {
  const Tensor points = tests::randn({3, 7});
  const auto few = principal_components(points, 4);
  const auto many = principal_components(concatenate({points, points, points}, 0), 4);
  CHECK(few.directions.shape() == Shape{4, 7});
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(few.variance_fraction[i] == doctest::Approx(many.variance_fraction[i]));
  CHECK(few.variance_fraction[2] == 0);
  const auto a = few.directions.values(), b = many.directions.values();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-6));
}

TEST_CASE("equal points have no direction and no variance") {
  const Tensor points = Tensor::full({4, 3}, 2);
  const auto found = principal_components(points, 2);
  for (const double v : found.project(points).values()) CHECK(v == doctest::Approx(0));
  CHECK(found.variance_fraction == std::vector<double>{0, 0});
}
