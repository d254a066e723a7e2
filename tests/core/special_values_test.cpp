#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/ops.h"
#include "core/parameter.h"

/// NaN, infinities, signed zeros, denormals, and values whose squares leave the range.
namespace qkv::tests {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

bool all_nan(const Tensor& x) {
  const auto values = x.values();
  return std::ranges::all_of(values, [](double v) { return std::isnan(v); });
}

template <class F>
void for_each_dtype(F f) {
  for (const DType dtype : {DType::float32, DType::float64}) f(dtype);
}

}  // namespace

TEST_CASE("a hidden key has a weight of 0 beside NaN, too") {
  for_each_dtype([](DType dtype) {
    for (const Index keys : {2, 5, 17, 40}) {
      const Tensor q = Tensor::full({1, 1, 1}, nan, dtype),
                   k = Tensor::full({1, keys, 1}, 1, dtype);
      const Tensor weights = attention_weights(q, k, {Indices({1}, {1}), false}, {});
      CHECK(all_nan(slice(weights, -1, 0, 1)));
      for (const double weight : slice(weights, -1, 1, keys).values()) CHECK(weight == 0);
    }
  });
}

TEST_CASE("where a loss is NaN, so are its gradients") {
  for_each_dtype([](DType dtype) {
    for (const auto& logits :
         {std::vector<double>{nan, 1}, {1, nan}, {inf, 1}, {-inf, -inf}, {inf, inf}}) {
      const Parameter x(Tensor::from(logits, {1, 2}, dtype));
      const Indices target({0}, {1});
      for (const Tensor& loss :
           {cross_entropy(x, target), cross_entropy(x, target, CrossEntropyOptions{}),
            -sum(log_softmax(x) * Tensor::from({1, 0}, {1, 2}, dtype))}) {
        CHECK(std::isnan(loss.item()));
        CHECK(all_nan(gradients_of(loss).of(x)));
      }
    }
  });
}

TEST_CASE("logits of rows that do not count reach neither a loss nor its gradients") {
  for_each_dtype([](DType dtype) {
    for (const double bad : {nan, inf, -inf}) {
      const Parameter x(Tensor::from({0, 0, bad, 1}, {2, 2}, dtype));
      const Indices targets({0, -1}, {2});
      for (const Tensor& loss :
           {cross_entropy(x, targets), cross_entropy(x, targets, CrossEntropyOptions{})}) {
        CHECK(loss.item() == doctest::Approx(std::log(2)));
        CHECK(gradients_of(loss).of(x).values() == std::vector<double>{-0.5, 0.5, 0, 0});
      }
    }
  });
}

TEST_CASE("a state of NaN does not reach other units' gradients through padding") {
  for_each_dtype([](DType dtype) {
    const auto zeros = [&](const Shape& shape) { return Parameter(Tensor::zeros(shape, dtype)); };
    const Parameter x = zeros({1, 2, 1}), w = zeros({2, 1}), u = zeros({2, 2}), b = zeros({2});
    const Parameter bias(Tensor::from({nan, 0}, {2}, dtype));
    const Tensor y = rnn(x, {w, u, bias, b}, Indices({1}, {1}));
    const auto slopes = gradients_of(sum(y)).of(u).values();
    CHECK(slopes[2] == 0);
    CHECK(slopes[3] == 0);
  });
}

TEST_CASE("dividing by a scalar divides, also by one without a finite reciprocal") {
  const double tiny = 1e-42;  // denormal in float32
  const auto quotient = static_cast<double>(3e-42F / static_cast<float>(tiny));
  CHECK((Tensor::scalar(3e-42) / tiny).item() == quotient);
  CHECK((3e-42 / Tensor::scalar(tiny)).item() == quotient);
  CHECK((Tensor::scalar(1) / 3.0).item() == static_cast<double>(1.0F / 3.0F));
  const Parameter x(Tensor::scalar(0));
  CHECK(gradients_of(x / tiny).of(x).item() == inf);
}

TEST_CASE(
    "a binary cross entropy of certainty has a slope in proportion to a tiny gradient from above") {
  const Parameter p(Tensor::full({}, 1, DType::float32));
  const float tiny = 1e-42F;
  const Tensor loss = binary_cross_entropy(p, Tensor::full({}, 0.3, DType::float32)) * tiny;
  CHECK(gradients_of(loss).of(p).item() / (tiny * 0.7e12) == doctest::Approx(1).epsilon(1e-5));
}

TEST_CASE("an attention scale of 0 has gradients of 0 also where the products behind it overflow") {
  for_each_dtype([](DType dtype) {
    const double large = dtype == DType::float32 ? 1e38 : 1e300;
    const Parameter q(Tensor::zeros({1, 3, 2}, dtype));
    const Tensor kv =
        Tensor::from({large, large, -large, 0, 0, -large, large, -large}, {1, 4, 2}, dtype);
    const Tensor y =
        attention(q, kv, kv, {}, {.heads = 1, .scale = 0}, Random(1, Purpose::testing));
    CHECK(gradients_of(sum(y)).of(q).values() == std::vector<double>(6, 0.0));
  });
}

}  // namespace qkv::tests
