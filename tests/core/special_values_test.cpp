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

TEST_CASE(
    "a binary cross entropy of certainty has a slope in proportion to a tiny gradient from above") {
  const Parameter p(Tensor::full({}, 1, DType::float32));
  const float tiny = 1e-42F;
  const Tensor loss = binary_cross_entropy(p, Tensor::full({}, 0.3, DType::float32)) * tiny;
  CHECK(gradients_of(loss).of(p).item() / (tiny * 0.7e12) == doctest::Approx(1).epsilon(1e-5));
}

}  // namespace qkv::tests
