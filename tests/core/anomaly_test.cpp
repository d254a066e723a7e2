#include "core/anomaly.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/ops.h"
#include "core/parameter.h"

namespace qkv::tests {

TEST_CASE("the op that first produces NaN or Inf is named, and nothing else is") {
  const Parameter x(Tensor::from({-1, 2}, {2}));
  const DetectAnomaly detect;
  CHECK_THROWS_WITH_AS(
      exp(log(x)), "[log] produced a NaN in its output of shape (2,), from inputs of shapes (2,)",
      AnomalyError);
  CHECK_THROWS_WITH_AS(
      x / Tensor::zeros({2}),
      "[divide] produced an infinity in its output of shape (2,), from inputs of shapes (2,), (2,)",
      AnomalyError);
}

TEST_CASE("infinite inputs are no anomaly") {
  const DetectAnomaly detect;
  const Tensor x = masked_fill(Tensor::full({2, 2}, 1), Tensor::from({0, 1}, {2}), -INFINITY);
  CHECK(softmax(x).values() == std::vector<double>{1, 0, 1, 0});
}

TEST_CASE("an op that produces Inf in backward is named") {
  const Parameter x(Tensor::from({0, 1}, {2}));
  const Tensor loss = sum(sqrt(x));
  CHECK(std::isinf(gradients_of(loss).of(x).values()[0]));
  const DetectAnomaly detect;
  CHECK_THROWS_WITH_AS(
      gradients_of(loss),
      "[sqrt] produced an infinity in backward, in the gradient of input 0 of shape (2,)",
      AnomalyError);
}

TEST_CASE("anomalies are detected while DetectAnomaly lives and not longer") {
  const Tensor x = Tensor::from({-1}, {1});
  { const DetectAnomaly detect; }
  CHECK(std::isnan(log(x).item()));
}

}  // namespace qkv::tests
