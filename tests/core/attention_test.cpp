#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/ops.h"
#include "core/parameter.h"
#include "tests/support/randn.h"

namespace qkv::tests {
namespace {

const Random no_dropout(1, Purpose::testing);

}  // namespace

TEST_CASE("under a causal mask with key lengths a short query does not attend to the future") {
  const Tensor ones = Tensor::full({7, 3, 1}, 1);
  std::vector<double> positions;
  for (int b = 0; b < 7; ++b) positions.insert(positions.end(), {1, 2, 3});
  const Tensor v = Tensor::from(positions, {7, 3, 1});
  const AttentionMask mask{Indices({1, 1, 1, 1, 1, 3, 3}, {7}), true};
  const auto y = attention(ones, ones, v, mask, {}, no_dropout).values();
  for (const std::size_t b : {5U, 6U})
    for (std::size_t t = 0; t < 3; ++t) {
      CAPTURE(b);
      CHECK(y[3 * b + t] == 1 + static_cast<double>(t) / 2);
    }
}

TEST_CASE("queries before the first key of a causal mask give zeros and finite gradients") {
  const Parameter q(randn({2, 3, 4})), k(randn({2, 2, 4})), v(randn({2, 2, 4}));
  const Tensor y = attention(q, k, v, {{}, true}, {}, no_dropout);
  for (const double value : slice(y, 1, 0, 1).values()) CHECK(value == 0);
  const Gradients gradients = gradients_of(sum(y * y));
  for (const Parameter* x : {&q, &k, &v})
    for (const double value : gradients.of(*x).values()) CHECK(std::isfinite(value));
}

TEST_CASE("scores of NaN and +inf reach every weight of their query") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const double bad : {std::nan(""), inf}) {
    const Tensor q = Tensor::from({1, 1}, {1, 2, 1}), k = Tensor::from({1, bad}, {1, 2, 1});
    for (const double weight : attention_weights(q, k, {}, {}).values()) CHECK(std::isnan(weight));
    const Parameter v(Tensor::from({1, 2}, {1, 2, 1}));
    const Tensor y = attention(q, k, v, {}, {}, no_dropout);
    for (const double value : y.values()) CHECK(std::isnan(value));
    for (const double value : gradients_of(sum(y)).of(v).values()) CHECK(std::isnan(value));
  }
}

TEST_CASE("attention's scale must be finite") {
  const Tensor x = randn({1, 2, 4});
  CHECK_THROWS_WITH_AS(attention(x, x, x, {}, {.scale = std::nan("")}, no_dropout),
                       "[attention] scale must be finite, got nan", ValueError);
}

}  // namespace qkv::tests
