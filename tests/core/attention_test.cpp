#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/vector.h"
#include "core/ops.h"
#include "core/parameter.h"
#include "tests/support/randn.h"

namespace qkv::tests {
namespace {

const Random no_dropout(1, Purpose::testing);

Index drawn(const Random& random, std::uint64_t i, Index low, Index high) {
  return std::min(
      high, low + static_cast<Index>(random.uniform(i) * static_cast<double>(high - low + 1)));
}

struct Drawn {
  Index batch, queries, keys, heads, head_width;
  AttentionMask mask;

  Index width() const { return heads * head_width; }
  AttentionOptions options() const { return {.heads = heads, .scale = 0.7}; }
};

/// Sizes around a vector of `width` elements, where blocks and tiles begin and end.
Drawn drawn_case(std::uint64_t number, Index width) {
  const Random random(3, Purpose::testing, number);
  Drawn d{drawn(random, 0, 1, 9),
          drawn(random, 1, 1, 2 * width + 3),
          0,
          drawn(random, 2, 1, 3),
          drawn(random, 3, 1, 4),
          {}};
  d.keys = number % 3 == 0 ? drawn(random, 4, 1, 2 * width + 3) : d.queries;
  d.mask.causal = number % 4 != 0;
  if (number % 5 == 0) return d;
  std::vector<std::int32_t> lengths;
  for (Index b = 0; b < d.batch; ++b)
    lengths.push_back(
        static_cast<std::int32_t>(drawn(random, 5 + static_cast<std::uint64_t>(b), 0, d.keys)));
  d.mask.key_lengths = Indices(lengths, {d.batch});
  return d;
}

bool hidden(const Drawn& d, Index b, Index query, Index key) {
  const auto lengths = d.mask.key_lengths.data();
  return (!lengths.empty() && key >= lengths[static_cast<std::size_t>(b)]) ||
         (d.mask.causal && key > query + d.keys - d.queries);
}

/// 0 where a query may attend to a key, -inf elsewhere: [batch, 1, queries, keys].
Tensor additive_mask(const Drawn& d, DType dtype) {
  std::vector<double> values;
  for (Index b = 0; b < d.batch; ++b)
    for (Index query = 0; query < d.queries; ++query)
      for (Index key = 0; key < d.keys; ++key)
        values.push_back(hidden(d, b, query, key) ? -std::numeric_limits<double>::infinity() : 0);
  return Tensor::from(values, {d.batch, 1, d.queries, d.keys}, dtype);
}

Tensor heads_of(const Tensor& x, const Drawn& d) {
  return permute(reshape(x, {x.dim(0), x.dim(1), d.heads, d.head_width}), {0, 2, 1, 3});
}

/// The definition, written with other ops.
Tensor by_definition(const Tensor& q, const Tensor& k, const Tensor& v, const Drawn& d) {
  const Tensor scores =
      matmul(heads_of(q, d), heads_of(k, d), Transpose::second) * d.options().scale;
  const Tensor weights = softmax(scores + additive_mask(d, q.dtype()));
  const Tensor y = permute(matmul(weights, heads_of(v, d)), {0, 2, 1, 3});
  return reshape(y, {d.batch, d.queries, d.width()});
}

double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const auto x = a.values(), y = b.values();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, std::isnan(x[i]) ? 1e9 : std::abs(x[i] - y[i]));
  return worst;
}

void check_against_definition(const Drawn& d, DType dtype, double tolerance) {
  CAPTURE(d.batch);
  CAPTURE(d.queries);
  CAPTURE(d.keys);
  CAPTURE(d.heads);
  CAPTURE(d.head_width);
  CAPTURE(d.mask.causal);
  const Parameter q(randn({d.batch, d.queries, d.width()}, dtype, 1));
  const Parameter k(randn({d.batch, d.keys, d.width()}, dtype, 2));
  const Parameter v(randn({d.batch, d.keys, d.width()}, dtype, 3));
  const Tensor y = attention(q, k, v, d.mask, d.options(), no_dropout);
  const Tensor expected = by_definition(q, k, v, d);
  CHECK(largest_difference(y, expected) < tolerance);
  const Tensor weights = randn(y.shape(), dtype, 4);
  const Gradients gradients = gradients_of(sum(y * weights));
  const Gradients expected_gradients = gradients_of(sum(expected * weights));
  for (const Parameter* x : {&q, &k, &v})
    CHECK(largest_difference(gradients.of(*x), expected_gradients.of(*x)) < tolerance);
}

}  // namespace

TEST_CASE("attention and its gradients agree with the definition for drawn shapes and masks") {
  for (std::uint64_t number = 0; number < 300; ++number) {
    check_against_definition(drawn_case(number, kernels::width<float>), DType::float32, 2e-4);
    check_against_definition(drawn_case(number, kernels::width<double>), DType::float64, 1e-11);
  }
}

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
