#include "core/creation.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/ops.h"
#include "core/parameter.h"
#include "tests/support/errors.h"

namespace qkv::tests {

using Values = std::vector<double>;

TEST_CASE("zeros, ones and ranges have the shape and dtype that are asked for") {
  const Tensor x = Tensor::from({1, 2, 3}, {3, 1}, DType::float64);
  CHECK(zeros_like(x).values() == Values{0, 0, 0});
  CHECK(ones_like(x).values() == Values{1, 1, 1});
  CHECK(ones_like(x).shape() == x.shape());
  CHECK(ones_like(x).dtype() == DType::float64);
  CHECK(arange(4).values() == Values{0, 1, 2, 3});
  CHECK(arange(0).size() == 0);
  CHECK_THROWS_AS(arange(-1), ShapeError);
}

TEST_CASE(
    "random tensors are a function of their stream, with the mean and variance of their law") {
  const Random random(3, Purpose::testing);
  const Index n = 20000;
  const auto moments = [&](const Tensor& x) {
    const double m = mean(x).item();
    return std::pair(m, mean(x * x).item() - m * m);
  };
  const auto [uniform_mean, uniform_variance] = moments(rand({n}, random, DType::float64));
  CHECK(uniform_mean == doctest::Approx(0.5).epsilon(0.02));
  CHECK(uniform_variance == doctest::Approx(1.0 / 12).epsilon(0.02));
  const auto [normal_mean, normal_variance] = moments(randn({n}, random, DType::float64));
  CHECK(std::abs(normal_mean) < 0.02);
  CHECK(normal_variance == doctest::Approx(1).epsilon(0.03));
  CHECK(randn({2, 3}, random).values() == randn({2, 3}, random).values());
}

TEST_CASE("tril keeps the lower triangle of each matrix, and the gradient there") {
  const Parameter x(Tensor::from({1, 2, 3, 4, 5, INFINITY}, {1, 2, 3}));
  CHECK(tril(x).values() == Values{1, 0, 0, 4, 5, 0});
  CHECK(gradients_of(sum(tril(x))).of(x).values() == Values{1, 0, 0, 1, 1, 0});
  CHECK(tril(Tensor::full({3, 2}, 1)).values() == Values{1, 0, 1, 1, 1, 1});
  CHECK_THROWS_AS(tril(arange(3)), ShapeError);
}

TEST_CASE("an element is read by its index, also counted from the end") {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(x(0, 2) == 3);
  CHECK(x(-1, -3) == 4);
  CHECK(Tensor::scalar(7)() == 7);
  CHECK(error_of<IndexError>([&] { x(2, 0); }) ==
        "[tensor] of shape (2, 3) has no index 2 on axis 0");
  CHECK(error_of<IndexError>([&] { x(1); }) ==
        "[tensor] of shape (2, 3) has 2 axes, got 1 indices");
}

}  // namespace qkv::tests
