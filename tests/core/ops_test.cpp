#include "core/ops.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/kernels/math.h"
#include "core/parameter.h"
#include "tests/support/randn.h"

namespace qkv::tests {
namespace {

Tensor ones(const Shape& shape) {
  return Tensor::full(shape, 1);
}

}  // namespace

TEST_CASE("shapes that do not fit are errors that show both and the op") {
  CHECK_THROWS_WITH_AS(
      ones({2, 3}) + ones({4}),
      "[add] shapes (2, 3) and (4,) do not broadcast: sizes 3 and 4 differ and neither is 1",
      ShapeError);
  CHECK_THROWS_WITH_AS(matmul(ones({2, 3, 4}), ones({5, 6})),
                       "[matmul] inner sizes differ: lhs (2, 3, 4) has 4, rhs (5, 6) has 5",
                       ShapeError);
  CHECK_THROWS_AS(matmul(ones({2, 3, 4}), ones({5, 4, 6})), ShapeError);
  CHECK_THROWS_AS(matmul(Tensor::scalar(1), ones({3})), ShapeError);
  CHECK_THROWS_WITH_AS(matmul(ones({3}), ones({2, 4, 5})),
                       "[matmul] inner sizes differ: lhs (3,) has 3, rhs (2, 4, 5) has 4",
                       ShapeError);
  CHECK_THROWS_WITH_AS(matmul(ones({3}), ones({3, 2}), Transpose::first),
                       "[matmul] a vector cannot be transposed: shapes (3,) and (3, 2)",
                       ShapeError);
  CHECK_THROWS_AS(linear(ones({2, 3}), ones({4, 2})), ShapeError);
  CHECK_THROWS_AS(linear(ones({2, 3}), ones({4, 3}), ones({3})), ShapeError);
  CHECK_THROWS_AS(reshape(ones({2, 3}), {4, -1}), ShapeError);
  CHECK_THROWS_AS(permute(ones({2, 3}), {0, 0}), ShapeError);
  CHECK_THROWS_AS(concatenate({ones({2, 3}), ones({2, 4})}, 0), ShapeError);
  CHECK_THROWS_AS(concatenate({}, 0), ShapeError);
  CHECK_THROWS_AS(layer_norm(ones({2, 3}), ones({2}), ones({2})), ShapeError);
  CHECK_THROWS_AS(softmax(Tensor::scalar(1)), ShapeError);
  CHECK_THROWS_AS(cross_entropy(ones({2, 3}), Indices({0}, {1})), ShapeError);
  CHECK_THROWS_AS(attention_weights(ones({1, 2, 4}), ones({1, 2, 6}), {}, {}), ShapeError);
}

TEST_CASE("axes, rows and ids outside their range are named") {
  CHECK_THROWS_WITH_AS(sum(ones({2, 3}), 2), "[sum] axis 2 is outside [-2, 2) of shape (2, 3)",
                       IndexError);
  CHECK_THROWS_AS(slice(ones({2, 3}), 1, 2, 4), IndexError);
  CHECK_THROWS_WITH_AS(embedding(ones({5, 2}), Indices({5}, {1})),
                       "[embedding] id 5 is outside the table of 5 rows", IndexError);
  CHECK_THROWS_AS(select_rows(ones({1, 2, 3}), Indices({2}, {1})), IndexError);
  CHECK_THROWS_AS(masked_mean(ones({1, 2, 3}), Indices({3}, {1})), IndexError);
  CHECK_THROWS_AS(cross_entropy(ones({1, 3}), Indices({3}, {1})), IndexError);
}

TEST_CASE("arguments outside their domain are named") {
  CHECK_THROWS_WITH_AS(dropout(ones({2}), 1.0, Random(1, Purpose::dropout)),
                       "[dropout] probability must be in [0, 1), got 1", ValueError);
  CHECK_THROWS_WITH_AS(attention_weights(ones({1, 2, 4}), ones({1, 2, 4}), {}, {.heads = 3}),
                       "[attention] 3 heads do not divide the width 4", ValueError);
}

TEST_CASE("dtypes do not mix silently") {
  CHECK_THROWS_WITH_AS(ones({2}) + Tensor::zeros({2}, DType::float64),
                       "[add] dtypes differ: float32 and float64; convert one with to()",
                       TypeError);
}

TEST_CASE("softmax sums to 1, ignores a shift and gives zeros where all is -inf") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor y =
      softmax(Tensor::from({1, 2, 3, 1001, 1002, 1003, -inf, -inf, -inf}, {3, 3}, DType::float64));
  const auto v = y.values();
  CHECK(v[0] + v[1] + v[2] == doctest::Approx(1).epsilon(1e-15));
  CHECK(v[3] == doctest::Approx(v[0]).epsilon(1e-12));
  CHECK(std::vector(v.begin() + 6, v.end()) == std::vector<double>{0, 0, 0});
}

TEST_CASE(
    "attention never looks at padding or at the future, and a query without keys gets zeros") {
  const Tensor q = randn({3, 4, 2}, DType::float64, 1), k = randn({3, 4, 2}, DType::float64, 2);
  const AttentionMask mask{Indices({4, 2, 0}, {3}), true};
  const std::array<std::size_t, 3> lengths{4, 2, 0};
  const auto w = attention_weights(q, k, mask, {}).values();
  for (std::size_t b = 0; b < 3; ++b)
    for (std::size_t t = 0; t < 4; ++t) {
      const std::size_t visible = std::min(t + 1, lengths[b]);
      double total = 0;
      for (std::size_t j = 0; j < 4; ++j) {
        total += w[(b * 4 + t) * 4 + j];
        if (j >= visible) CHECK(w[(b * 4 + t) * 4 + j] == 0);
      }
      CHECK(total == doctest::Approx(visible ? 1 : 0));
    }
}

TEST_CASE("what stands in the padding reaches neither attention's value nor its gradients") {
  // Of a query each, so that many problems are computed side by side.
  const Tensor queries = randn({3, 1, 2}, DType::float32, 1), keys = randn({3, 5, 2});
  const std::array<Index, 3> lengths{5, 2, 0};
  const auto run = [&](float filler) {
    Tensor padded = copy_if_shared(keys);
    const auto elements = padded.mutable_data<float>();
    for (std::size_t b = 0; b < 3; ++b)
      std::fill(elements.begin() + static_cast<std::ptrdiff_t>(10 * b) + 2 * lengths[b],
                elements.begin() + static_cast<std::ptrdiff_t>(10 * (b + 1)), filler);
    const Parameter q(queries), k(padded), v(padded);
    const AttentionMask mask{Indices({5, 2, 0}, {3}), false};
    const Tensor y = attention(q, k, v, mask, {.heads = 2}, Random(1, Purpose::dropout));
    const Gradients gradients = gradients_of(sum(y * y));
    return std::vector{y.values(), gradients.of(q).values(), gradients.of(k).values(),
                       gradients.of(v).values()};
  };
  CHECK(run(NAN) == run(0));
}

TEST_CASE("a bias of -inf hides keys as lengths and causality do") {
  const auto drawn = [](std::uint64_t i) { return randn({2, 21, 4}, DType::float64, i); };
  const AttentionMask mask{Indices({21, 0}, {2}), true};
  std::vector<double> hidden;
  for (Index b = 0; b < 2; ++b)
    for (Index q = 0; q < 21; ++q)
      for (Index k = 0; k < 21; ++k) hidden.push_back(b == 0 && k <= q ? 0 : -INFINITY);
  const AttentionMask bias{.key_lengths = {},
                           .bias = Tensor::from(hidden, {2, 1, 21, 21}, DType::float64)};
  const auto run = [&](const AttentionMask& by) {
    const Parameter q(drawn(1)), k(drawn(2)), v(drawn(3));
    const Tensor y = attention(q, k, v, by, {.heads = 2}, Random(1, Purpose::dropout));
    const Gradients gradients = gradients_of(sum(y * y));
    return std::vector{attention_weights(q, k, by, {.heads = 2}).values(), y.values(),
                       gradients.of(q).values(), gradients.of(k).values(),
                       gradients.of(v).values()};
  };
  const auto actual = run(bias), expected = run(mask);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    REQUIRE(actual[i].size() == expected[i].size());
    const auto near = [](double x, double y) { return std::abs(x - y) < 1e-14; };
    CHECK(std::ranges::equal(actual[i], expected[i], near));
  }
}

TEST_CASE("an attention bias shifts the weights in the ratio of its exponentials") {
  const Tensor x = Tensor::zeros({1, 2, 2});
  const Tensor bias = Tensor::from({0, std::log(3), std::log(4), 0}, {2, 2});
  const auto w = attention_weights(x, x, {.key_lengths = {}, .bias = bias}, {}).values();
  for (const auto& [i, expected] : {std::pair(0, 0.25), {1, 0.75}, {2, 0.8}, {3, 0.2}})
    CHECK(w[static_cast<std::size_t>(i)] == doctest::Approx(expected));
  const AttentionMask wrong{.key_lengths = {}, .bias = ones({3, 2})};
  CHECK_THROWS_AS(attention_weights(x, x, wrong, {}), ShapeError);
  CHECK_THROWS_WITH_AS(
      attention_weights(x, x, {.key_lengths = {}, .bias = ones({2, 1, 1, 1})}, {}),
      "[attention] the bias (2, 1, 1, 1) does not broadcast to the scores (1, 1, 2, 2)",
      ShapeError);
}

TEST_CASE("attention without queries is empty, and without keys 0") {
  const Random random(1, Purpose::dropout);
  CHECK(attention(ones({2, 0, 4}), ones({2, 3, 4}), ones({2, 3, 4}), {}, {}, random).shape() ==
        Shape{2, 0, 4});
  CHECK(attention(ones({1, 2, 2}), ones({1, 0, 2}), ones({1, 0, 2}), {}, {}, random).values() ==
        std::vector<double>(4, 0.0));
}

TEST_CASE("a sum reuses the buffer of an unshared value, and no other") {
  const auto memory = [](const Tensor& x) { return x.data<float>().data(); };
  Tensor alone = ones({3});
  const auto* const taken = memory(alone);
  const Tensor y = ones({3}) + std::move(alone);
  CHECK(memory(y) == taken);
  CHECK(y.values() == std::vector<double>{2, 2, 2});

  Tensor held = ones({3});
  const Tensor holder = held;
  CHECK(memory(ones({3}) + std::move(held)) != memory(holder));
  CHECK(holder.values() == std::vector<double>{1, 1, 1});

  const Parameter x(ones({3}));
  Tensor saved = exp(x.value());  // whose backward needs it
  const double e = saved.values()[0];
  const Tensor loss = sum(ones({3}) + std::move(saved));
  CHECK(gradients_of(loss).of(x).values() == std::vector<double>{e, e, e});
}

TEST_CASE("dropout keeps the mean, and the same stream drops the same elements") {
  const Random random(5, Purpose::dropout);
  const auto y = dropout(ones({10'000}), 0.3, random).values();
  double total = 0;
  for (const double v : y) total += v;
  CHECK(total / 10'000 == doctest::Approx(1).epsilon(0.02));
  CHECK(y == dropout(ones({10'000}), 0.3, random).values());
  CHECK(y != dropout(ones({10'000}), 0.3, Random(5, Purpose::dropout, 1)).values());
}

TEST_CASE("cross entropy of equal logits is log V, and without any target 0") {
  CHECK(cross_entropy(ones({2, 8}), Indices({1, 7}, {2})).item() == doctest::Approx(std::log(8)));
  CHECK(cross_entropy(ones({2, 8}), Indices({-1, -1}, {2})).item() == 0);
}

TEST_CASE("float32 exp and tanh are within 2 units in the last place over their whole range") {
  const auto units = [](float actual, double exact) {
    const auto nearest = static_cast<float>(exact);
    if (std::isinf(nearest)) return std::isinf(actual) ? 0.0 : 1e9;
    const double unit =
        std::max<double>(std::nextafter(std::fabs(nearest), INFINITY) - std::fabs(nearest), 1e-45);
    return std::fabs(actual - exact) / unit;
  };
  double worst_exp = 0, worst_tanh = 0;
  for (float x = -110; x < 95; x += 0.00137f)
    worst_exp = std::max(worst_exp, units(math::exp(x), std::exp(double{x})));
  for (float x = -12; x < 12; x += 0.000137f)
    worst_tanh = std::max(worst_tanh, units(math::tanh(x), std::tanh(double{x})));
  CHECK(worst_exp < 2);
  CHECK(worst_tanh < 2);
  CHECK(std::isnan(math::exp(NAN)));
  CHECK(std::isnan(math::tanh(NAN)));
  CHECK(math::exp(-INFINITY) == 0);
  CHECK(std::isinf(math::exp(INFINITY)));
  CHECK(math::tanh(INFINITY) == 1);
}

}  // namespace qkv::tests
