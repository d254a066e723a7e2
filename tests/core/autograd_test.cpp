#include "core/autograd.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/ops.h"
#include "core/parameter.h"

namespace qkv::tests {
namespace {

Parameter number(double value) {
  return Parameter(Tensor::scalar(value, DType::float64));
}

}  // namespace

TEST_CASE("a value used twice receives both gradients: b = a + a, c = b + b") {
  const Parameter a = number(3);
  const Tensor b = a + a;
  const Tensor c = b + b;
  CHECK(c.item() == 12);
  CHECK(gradients_of(c).of(a).item() == 4);
}

TEST_CASE("micrograd's README expression has its values and gradients") {
  const Parameter a = number(-4), b = number(2);
  Tensor c = a + b;
  Tensor d = a * b + power(b, 3);
  c = c + c + 1;
  c = c + (1 + c + (-a.value()));
  d = d + d * 2 + relu(b + a);
  d = d + 3 * d + relu(b - a);
  const Tensor e = c - d;
  const Tensor f = power(e, 2);
  Tensor g = f / 2.0;
  g = g + 10.0 / f;
  CHECK(g.item() == doctest::Approx(24.7041).epsilon(1e-6));
  const Gradients gradients = gradients_of(g);
  CHECK(gradients.of(a).item() == doctest::Approx(138.8338).epsilon(1e-6));
  CHECK(gradients.of(b).item() == doctest::Approx(645.5773).epsilon(1e-6));
}

TEST_CASE("a chain of 100,000 ops overflows the stack neither in backward nor when freed") {
  const Parameter a = number(1);
  const auto chain = [&] {
    Tensor x = a;
    for (int i = 0; i < 100'000; ++i) x = x + 1;
    return x;
  };
  CHECK(gradients_of(chain()).of(a).item() == 1);
  { const Tensor freed_without_backward = chain(); }
  const Tensor kept = chain();
  CHECK(gradients_of(kept).of(a).item() == 1);
}

TEST_CASE("a graph that is still held can be walked again") {
  const Parameter a = number(3);
  const Tensor y = a * a;
  CHECK(gradients_of(y).of(a).item() == 6);
  CHECK(gradients_of(y).of(a).item() == 6);
}

TEST_CASE("a walk that ends in an exception leaves the graph valid") {
  const Parameter a = number(3);
  bool fail = true;
  const Tensor b = record("fails once", Tensor::scalar(1, DType::float64), {a},
                          [&](const Tensor& dy, InputGradients& inputs) {
                            if (std::exchange(fail, false)) throw Error("once");
                            inputs.add(0, dy);
                          });
  const Tensor y = b * a + a;
  CHECK_THROWS_AS(gradients_of(y), Error);
  CHECK(gradients_of(y).of(a).item() == 5);
}

TEST_CASE("the derivative of a parameter by itself is 1") {
  const Parameter a = number(3);
  CHECK(gradients_of(a.value()).of(a).item() == 1);
}

TEST_CASE("gradients need a scalar loss and say so") {
  const Parameter a(Tensor::zeros({2, 3}));
  CHECK_THROWS_WITH_AS(
      gradients_of(a + 1),
      "[gradients_of] needs a scalar loss, got shape (2, 3); reduce it with mean() or sum()",
      ShapeError);
}

TEST_CASE(
    "a parameter that the loss does not depend on has no gradient, and asking names its shape") {
  const Parameter a = number(1), b(Tensor::zeros({2, 3}));
  const Gradients gradients = gradients_of(a * a);
  CHECK(gradients.has(a));
  CHECK_FALSE(gradients.has(b));
  CHECK_THROWS_AS(gradients.of(b), ValueError);
}

TEST_CASE("gradients of micro-batches add up and scale") {
  const Parameter a = number(2), b = number(5);
  Gradients gradients = gradients_of(a * a);
  gradients += gradients_of(a * b);
  gradients *= 0.5;
  CHECK(gradients.of(a).item() == 4.5);
  CHECK(gradients.of(b).item() == 1);
  CHECK(gradients.norm() == doctest::Approx(std::sqrt(4.5 * 4.5 + 1)));
}

TEST_CASE("gradients are added to those that are passed in") {
  const Parameter a = number(2), w(Tensor::from({1, 2}, {1, 2})), x(Tensor::from({3, 5}, {1, 2}));
  Gradients sum = gradients_of(a * a);
  sum = gradients_of(a * 3, std::move(sum));
  CHECK(sum.of(a).item() == 7);
  const auto loss = [&] { return reshape(linear(x, w, Tensor()), {}); };
  sum = gradients_of(loss(), gradients_of(loss()));
  CHECK(sum.of(w).values() == std::vector<double>{6, 10});
  CHECK(sum.of(x).values() == std::vector<double>{2, 4});
  CHECK(x.value().values() == std::vector<double>{3, 5});
}

TEST_CASE("a frozen parameter receives no gradient") {
  Parameter a = number(2);
  const Parameter b = number(3);
  a.freeze();
  const Gradients gradients = gradients_of(a * b);
  CHECK_FALSE(gradients.has(a));
  CHECK(gradients.of(b).item() == 2);
}

}  // namespace qkv::tests
