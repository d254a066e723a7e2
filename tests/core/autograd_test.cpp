#include "core/autograd.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/ops.h"
#include "core/parameter.h"
#include "tests/support/errors.h"
#include "tests/support/randn.h"

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

TEST_CASE(
    "a backward with a gradient of another shape than its input's names op, input and shapes") {
  const Parameter x(Tensor::zeros({2, 3}));
  const Tensor wrong = Tensor::zeros({2});
  const auto error = [&](auto add) {
    return error_of<ShapeError>([&] {
      gradients_of(sum(record("mine", x.value().detach(), {x.value()},
                              [&](const Tensor&, InputGradients& inputs) { add(inputs); })));
    });
  };
  const std::string expected =
      "[mine] backward has a gradient of shape (2,) for input 0 of shape (2, 3)";
  CHECK(error([&](InputGradients& inputs) { inputs.add(0, wrong); }) == expected);
  CHECK(error([&](InputGradients& inputs) { inputs.add(0, [&] { return wrong; }); }) == expected);
  CHECK(error([&](InputGradients& inputs) { inputs.add(0, [&](Tensor) { return wrong; }); }) ==
        expected);
}

TEST_CASE("a backward with a gradient of another type than its input's names op, input and types") {
  const Parameter x(Tensor::zeros({2}));
  CHECK(error_of<TypeError>([&] {
          gradients_of(sum(record("mine", x.value().detach(), {x.value()},
                                  [](const Tensor&, InputGradients& inputs) {
                                    inputs.add(0, Tensor::zeros({2}, DType::float64));
                                  })));
        }) == "[mine] backward has a gradient of float64 for input 0 of float32");
}

TEST_CASE("a backward with a gradient for an input that the op does not have is an error") {
  const Parameter x(Tensor::zeros({2}));
  CHECK(error_of<ValueError>([&] {
          gradients_of(
              sum(record("mine", x.value().detach(), {x.value()},
                         [](const Tensor& dy, InputGradients& inputs) { inputs.add(1, dy); })));
        }) == "[mine] backward adds a gradient to input 1 of 1, counted from 0");
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

TEST_CASE("the norm of gradients does not depend on their order, and passes NaN and infinity on") {
  const Parameter a = number(1), b = number(1), c = number(1);
  const auto norm_of = [](std::initializer_list<std::pair<const Parameter*, double>> all) {
    Gradients::Entries entries;
    for (const auto& [parameter, value] : all)
      entries.emplace_back(parameter->node(), Tensor::scalar(value, DType::float64));
    return Gradients(std::move(entries)).norm();
  };
  CHECK(norm_of({{&a, 1e8}, {&b, 1}, {&c, 1}}) == norm_of({{&b, 1}, {&c, 1}, {&a, 1e8}}));
  CHECK(std::isnan(norm_of({{&a, NAN}, {&b, 1}, {&c, INFINITY}})));
  CHECK(std::isinf(norm_of({{&a, 1}, {&b, INFINITY}, {&c, 2}})));
  CHECK(Gradients().norm() == 0);
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

TEST_CASE("a recomputed function has the bits of the function, and calls it again in backward") {
  std::uint64_t stream = 0;
  const auto normal_parameter = [&](const Shape& shape) {
    return Parameter(randn(shape, DType::float32, stream++));
  };
  const Parameter start = normal_parameter({5, 7}), w_1 = normal_parameter({7, 7}),
                  w_2 = normal_parameter({7, 7}), w_3 = normal_parameter({7, 7}),
                  other = normal_parameter({5, 7});
  int calls = 0;
  // As blocks of a decoder: both inputs are used twice, the second by all calls.
  const auto block = [&](std::span<const Tensor> x) {
    ++calls;
    return x[0] + tanh(linear(x[0], w_1, {})) * (linear(x[1], w_2, {}) * linear(x[1], w_3, {}));
  };
  const auto of_three = [&](auto call) {
    Tensor x = start * 0.5;
    const Tensor y = other * 2.0;
    for (int i = 0; i < 3; ++i) x = call(x, y);
    return mean(x * x);
  };
  const Tensor plain = of_three([&](const Tensor& x, const Tensor& y) {
    return block(std::array{x, y});
  });
  CHECK(calls == 3);
  Tensor again = of_three([&](const Tensor& x, const Tensor& y) {
    return recomputed({x, y}, block);
  });
  CHECK(calls == 6);
  CHECK(again.item() == plain.item());
  const Gradients expected = gradients_of(plain), found = gradients_of(again),
                  twice = gradients_of(std::move(again));
  CHECK(calls == 12);
  for (const Gradients* gradients : {&found, &twice}) {
    for (const Parameter* parameter : {&start, &w_1, &w_2, &w_3, &other})
      CHECK(gradients->of(*parameter).values() == expected.of(*parameter).values());
    CHECK(gradients->norm() == expected.norm());  // the same order, too
  }
}

TEST_CASE("a recomputed function continues with the state that it had") {
  const Parameter a = number(3);
  struct Counted {
    int count = 0;
    Tensor operator()(std::span<const Tensor> x) { return x[0] * static_cast<double>(++count); }
  } counted;
  const Tensor y = recomputed({recomputed({a * 1.0}, counted)}, counted);
  CHECK(counted.count == 2);
  CHECK(y.item() == 6);
  CHECK(gradients_of(y).of(a).item() == 2);
}

TEST_CASE("recomputed functions of constants, of parameters and without an effect") {
  const Parameter a = number(3), unused = number(4);
  auto doubled = [](std::span<const Tensor> x) { return x[0] + x[0]; };
  auto first = [](std::span<const Tensor> x) { return x[0]; };
  CHECK_FALSE(recomputed({Tensor::scalar(2)}, doubled).node());
  CHECK(gradients_of(recomputed({a.value()}, doubled)).of(a).item() == 2);
  CHECK(gradients_of(recomputed({a.value()}, first)).of(a).item() == 1);
  CHECK(gradients_of(recomputed({a * 2.0}, first)).of(a).item() == 2);
  // A tensor that the result does not depend on has a gradient from elsewhere alone.
  const Tensor other = unused * 5.0;
  CHECK(gradients_of(recomputed({a * 2.0, other}, first) + other).of(unused).item() == 5);
  const NoGrad no_grad;
  CHECK_FALSE(recomputed({a * 2.0}, doubled).node());
}

}  // namespace qkv::tests
