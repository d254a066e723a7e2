#include "core/ops.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/kernels/math.h"
#include "core/parameter.h"

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
