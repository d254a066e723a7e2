// The worked example of docs/experiments.md: every value in it is computed here.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/ops.h"

using namespace qkv;

namespace {

/// Values equal those of the text, which has `digits` decimals.
void check_printed(const Tensor& x, const std::vector<double>& printed, int digits) {
  const auto values = x.values();
  REQUIRE(values.size() == printed.size());
  for (std::size_t i = 0; i < printed.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values[i] - printed[i]) <= 0.5 * std::pow(10, -digits) + 1e-12);
  }
}

Tensor row(std::initializer_list<double> values) {
  return Tensor::from(std::vector(values), {1, std::ssize(values)}, DType::float64);
}

/// The query of "it".
const Tensor query = row({0.6, 0.5, 0.4});

/// The keys of The, animal, didn't, cross, street, it, was and tired.
Tensor keys() {
  return Tensor::from(std::vector{0.2, 0.1, 0.0, 0.6, 0.5, 0.4, 0.1, 0.2, 0.1, 0.2, 0.1, 0.3,  //
                                  0.5, 0.4, 0.3, 0.7, 0.6, 0.5, 0.1, 0.0, 0.2, 0.9, 0.8, 0.7},
                      {8, 3}, DType::float64);
}

/// The values of The, animal, didn't, cross, the, street, because, it, was, too and tired.
Tensor values() {
  return Tensor::from(std::vector{0.1, 0.2, 0.3, 0.7, 0.6, 0.5, 0.1, 0.1, 0.2, 0.0, 0.1,
                                  0.1, 0.2, 0.3, 0.2, 0.5, 0.4, 0.3, 0.1, 0.2, 0.1, 0.6,
                                  0.5, 0.4, 0.1, 0.1, 0.0, 0.0, 0.0, 0.1, 0.8, 0.7, 0.6},
                      {11, 3}, DType::float64);
}

}  // namespace

TEST_CASE("worked example: the scores of \"it\" are products of its query with all keys") {
  check_printed(matmul(query, keys(), Transpose::second),
                {0.17, 0.77, 0.20, 0.29, 0.62, 0.92, 0.14, 1.22}, 10);
}

TEST_CASE("worked example: softmax sums to one and puts tired first, not animal") {
  const Tensor weights = softmax(matmul(query, keys(), Transpose::second));
  check_printed(weights, {0.0800, 0.1458, 0.0825, 0.0902, 0.1255, 0.1694, 0.0777, 0.2287}, 4);
  CHECK(sum(weights).item() == doctest::Approx(1));
  const auto w = weights.values();
  CHECK(std::ranges::max_element(w) == w.begin() + 7);
}

TEST_CASE("worked example: divided by sqrt(3) the scores give more even weights") {
  const Tensor scores = matmul(query, keys(), Transpose::second);
  check_printed(softmax(scores / std::sqrt(3.0)),
                {0.0984, 0.1392, 0.1002, 0.1055, 0.1277, 0.1518, 0.0968, 0.1805}, 4);
}

TEST_CASE("worked example: the true weights give another sum than the rounded ones") {
  const Tensor weights = softmax(matmul(query, keys(), Transpose::second));
  const Tensor v = concatenate({slice(values(), 0, 0, 4), slice(values(), 0, 5, 6),
                                slice(values(), 0, 7, 9), slice(values(), 0, 10, 11)},
                               0);
  check_printed(matmul(weights, v), {0.4735, 0.4236, 0.3651}, 4);
}

TEST_CASE("worked example: the rounded weights give 0.601, 0.519, 0.434") {
  const Tensor weights = row({0.05, 0.70, 0.02, 0.01, 0.01, 0.20, 0.01, 0, 0.01, 0.01, 0});
  check_printed(matmul(weights, values()), {0.601, 0.519, 0.434}, 10);
  CHECK(sum(weights).item() == doctest::Approx(1.02));
}

TEST_CASE("worked example: the op of the attention layer takes the same steps") {
  const auto alone = [](const Tensor& x) { return reshape(x, {1, x.dim(0), x.dim(1)}); };
  const Tensor steps = matmul(softmax(matmul(query, keys(), Transpose::second)), keys());
  const Tensor op =
      attention(alone(query), alone(keys()), alone(keys()), {}, {}, Random(1, Purpose::dropout));
  check_printed(op, steps.values(), 10);
}

TEST_CASE(
    "worked example: without parameters, 3 x n times n x 3 gives each word's similarity to each") {
  // money, bank, grows with n = 2
  const Tensor e = Tensor::from(std::vector{1.0, 0.0, 0.6, 0.8, 0.0, 1.0}, {3, 2}, DType::float64);
  const Tensor scores = matmul(e, e, Transpose::second);
  CHECK(scores.shape() == Shape{3, 3});
  check_printed(scores, {1, 0.6, 0, 0.6, 1, 0.8, 0, 0.8, 1}, 10);
  const Tensor weights = softmax(scores);
  check_printed(sum(weights, 1), {1, 1, 1}, 10);
  check_printed(weights, {0.4906, 0.3289, 0.1805, 0.2693, 0.4018, 0.3289, 0.1682, 0.3744, 0.4573},
                4);
  check_printed(matmul(weights, e), {0.6880, 0.4436, 0.5104, 0.6503, 0.3929, 0.7569}, 4);
}
