#include "inspect/linear_algebra.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/ops.h"
#include "tests/support/randn.h"

using namespace qkv;

TEST_CASE("singular values of a product of a rotation and a scaling are the scales") {
  const double c = std::cos(0.7), s = std::sin(0.7);
  const Tensor rotation = Tensor::from({c, -s, s, c}, {2, 2}, DType::float64);
  const Tensor scaling = Tensor::from({2, 0, 0, 0, 5, 0}, {2, 3}, DType::float64);
  const auto values = product_singular_values(rotation, scaling);
  REQUIRE(values.size() == 2);
  CHECK(values[0] == doctest::Approx(5));
  CHECK(values[1] == doctest::Approx(2));
}

TEST_CASE("the squares of a product's singular values add up to the square of its norm") {
  const Tensor a = tests::randn({2, 5}), b = tests::randn({2, 3});
  const auto values = product_singular_values(a, b);
  REQUIRE(values.size() == 2);
  const Tensor product = matmul(a, b, Transpose::first);
  CHECK(values[0] * values[0] + values[1] * values[1] ==
        doctest::Approx(sum(product * product).item()).epsilon(1e-5));
}

TEST_CASE("a symmetric matrix is made of its eigenpairs, the largest first") {
  const Tensor x = tests::randn({7, 4}, DType::float64);
  const Tensor symmetric = matmul(x, x, Transpose::first);
  const auto [values, vectors] = largest_eigenpairs(symmetric, 4);
  CHECK(std::ranges::is_sorted(values, std::greater()));
  const Tensor scaled = vectors * Tensor::from(values, {4, 1}, DType::float64);
  const Tensor error = matmul(vectors, scaled, Transpose::first) - symmetric;
  CHECK(sum(error * error).item() < 1e-20);
}
