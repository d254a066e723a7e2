#include "core/gradient_check.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/ops.h"
#include "tests/support/errors.h"

using namespace qkv;

namespace {

Parameter parameter_of(std::initializer_list<double> values) {
  return Parameter(Tensor::from(values, {static_cast<Index>(values.size())}, DType::float64));
}

/// x, with a gradient that is off by `error` at element `at`.
Tensor with_wrong_gradient(const Tensor& x, std::size_t at, double error) {
  return record("wrong", x.detach(), {x}, [=](const Tensor& dy, InputGradients& inputs) {
    auto dx = dy.values();
    dx[at] += error;
    inputs.add(0, Tensor::from(dx, dy.shape(), DType::float64));
  });
}

}  // namespace

TEST_CASE("each parameter has its own worst element, with both derivatives") {
  Parameter right = parameter_of({1, 2}), wrong = parameter_of({0.5, -1, 3});
  const auto checks = check_each_gradient({{"right", &right}, {"wrong", &wrong}}, [&] {
    return sum(right * right) + sum(with_wrong_gradient(wrong, 1, 1e-3));
  });
  REQUIRE(checks.size() == 2);
  CHECK(checks[0].parameter == "right");
  CHECK(checks[0].error < 1e-8);
  CHECK(checks[0].checked == 2);
  CHECK(checks[1].checked == 3);
  CHECK(checks[1].parameter == "wrong");
  CHECK(checks[1].shape == Shape{3});
  CHECK(checks[1].element == 1);
  CHECK(checks[1].analytic == doctest::Approx(1.001));
  CHECK(checks[1].numeric == doctest::Approx(1));
  CHECK(checks[1].error == doctest::Approx(1e-3 / 1.001));
}

TEST_CASE("the error is relative to gradients above the scale, so that small ones count") {
  Parameter x = parameter_of({1, 1});
  const auto error = [&](double scale) {
    return check_each_gradient({{"x", &x}},
                               [&] { return sum(with_wrong_gradient(1e-4 * x.value(), 0, 0.1)); },
                               {.scale = scale})[0]
        .error;
  };
  CHECK(error(1) < 2e-5);
  CHECK(error(1e-6) == doctest::Approx(0.1 / 1.1).epsilon(1e-4));
}

TEST_CASE("a parameter without a gradient is wrong where the loss depends on it") {
  Parameter x = parameter_of({3}), unused = parameter_of({1});
  const auto checks = check_each_gradient({{"x", &x}, {"unused", &unused}},
                                          [&] { return sum(x.value().detach() * x.value()); });
  CHECK(checks[0].analytic == 3);
  CHECK(checks[0].numeric == doctest::Approx(6));
  CHECK(checks[1].error == 0);
}

TEST_CASE("a kink close to an element is no wrong gradient, which no smaller step would mend") {
  Parameter x = parameter_of({3e-6, 1});  // h = 1e-5 is on both sides of 0, h = 1e-6 is not
  const std::vector<NamedParameter> named = {{"x", &x}};
  const auto loss = [&] { return sum(relu(x)); };
  CHECK(check_each_gradient(named, loss)[0].error > 0.1);
  CHECK(check_each_gradient(named, loss, {.tolerance = 1e-6})[0].error < 1e-6);
  const auto wrong = [&] { return sum(with_wrong_gradient(relu(x), 0, 1e-3)); };
  CHECK(check_each_gradient(named, wrong, {.tolerance = 1e-6})[0].error > 9e-4);
  CHECK(x.value().values() == std::vector<double>{3e-6, 1});
}

TEST_CASE("a derivative that is not finite is an infinite error") {
  Parameter x = parameter_of({1});
  const auto loss = [&] { return sum(with_wrong_gradient(x, 0, NAN)); };
  CHECK(check_gradients({{"x", &x}}, loss).error == std::numeric_limits<double>::infinity());
}

TEST_CASE("half of a large parameter's sample has gradients, where few elements have") {
  constexpr Index size = 10000, used = 7000;
  std::vector<double> values(size, 1.0);
  Parameter table(Tensor::from(values, {size}, DType::float64));
  const auto check = [&](std::uint64_t seed) {
    return check_each_gradient(
        {{"table", &table}},
        [&] { return sum(with_wrong_gradient(slice(table, 0, used, used + 4), 0, 1e-3)); },
        {.elements = 8, .seed = seed})[0];
  };
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    CHECK(check(seed).checked == 8);
    CHECK(check(seed).element == used);
    CHECK(check(seed).error > 9e-4);
  }
}

TEST_CASE("the sample of a large parameter is a function of the seed") {
  std::vector<double> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  Parameter x(Tensor::from(values, {1000}, DType::float64));
  const auto losses = [&](std::uint64_t seed) {
    std::vector<double> seen;
    const auto loss = [&] {
      Tensor y = sum(x * x * x);
      seen.push_back(y.item());
      return y;
    };
    check_each_gradient({{"x", &x}}, loss, {.elements = 8, .seed = seed});
    return seen;
  };
  CHECK(losses(1).size() == 1 + 2 * 8);
  CHECK(losses(1) == losses(1));
  CHECK(losses(1) != losses(2));
}

TEST_CASE("the worst element of several parameters has the number of elements of all of them") {
  Parameter a = parameter_of({1, 2}), b = parameter_of({0.5, -1, 3});
  const GradientCheck check = check_gradients(
      {{"a", &a}, {"b", &b}}, [&] { return sum(with_wrong_gradient(a, 0, 1e-3)) + sum(b * b); });
  CHECK(check.parameter == "a");
  CHECK(check.checked == 5);
}

TEST_CASE("a gradient check of float32 names the parameter and what to do") {
  Parameter rough(Tensor::zeros({2}));
  CHECK(error_of<TypeError>([&] {
          check_gradients({{"rough", &rough}}, [&] { return sum(rough * 2); });
        }) ==
        "[check_gradients] rough is float32, whose differences are too rough; use float64: "
        "convert(module, DType::float64) or Tensor::to");
}
