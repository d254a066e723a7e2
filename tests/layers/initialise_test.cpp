#include "layers/initialise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "layers/linear.h"
#include "tests/support/errors.h"

namespace qkv::tests {
namespace {

struct Moments {
  double mean, std, largest;
};

Moments moments(const Tensor& x) {
  Moments m{0, 0, 0};
  const auto values = x.values();
  for (const double v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.std += v * v / static_cast<double>(values.size());
    m.largest = std::max(m.largest, std::abs(v));
  }
  m.std = std::sqrt(m.std);
  return m;
}

void check(const Initialiser& initialiser, const Shape& shape, double std, double largest) {
  const Moments m = moments(initialiser(shape, Random(1, Purpose::testing)));
  CHECK(std::abs(m.mean) < 0.05 * std);
  CHECK(m.std / std == doctest::Approx(1).epsilon(0.02));
  CHECK(m.largest <= largest);
}

struct InOut : Module {
  void visit(ModuleVisitor& visit) override { visit("in", in)("out", out); }
  Linear in{3, 4}, out{4, 2};
};

struct OutIn : Module {
  void visit(ModuleVisitor& visit) override { visit("in", in)("out", out); }
  Linear out{4, 2}, in{3, 4};
};

template <class M>
std::map<std::string, std::vector<double>> first_values(std::uint64_t seed) {
  M module;
  initialise(module, seed);
  std::map<std::string, std::vector<double>> all;
  for (const auto& [path, value] : state_of(module)) all[path] = value.values();
  return all;
}

}  // namespace

TEST_CASE("first values depend on the seed, and not on the order of members") {
  CHECK(first_values<InOut>(1) == first_values<OutIn>(1));
  CHECK(first_values<InOut>(1) != first_values<InOut>(2));
}

TEST_CASE("each parameter has first values of its own") {
  struct Twins : Module {
    void visit(ModuleVisitor& visit) override { visit("a", a)("b", b); }
    Linear a{3, 4}, b{3, 4};
  };
  auto values = first_values<Twins>(1);
  CHECK(values["a.weight"] != values["b.weight"]);
  CHECK(values["a.bias"] == std::vector<double>(4, 0));
}

TEST_CASE("two parameters of one name are an error that says it") {
  struct Twice : Module {
    void visit(ModuleVisitor& visit) override { visit("a", first)("a", second); }
    Linear first{2, 2}, second{2, 2};
  } module;
  CHECK(error_of<ValueError>([&] { initialise(module, 1); }) ==
        "[module] `visit` gives two parameters the name a.weight");
}

TEST_CASE("a parameter without a value says what gives it one") {
  InOut module;
  CHECK(module.in.weight.shape() == Shape{4, 3});
  CHECK(
      error_of<ValueError>([&] {
        module.in(Tensor::zeros({1, 3}));
      }) ==
      "[parameter] a parameter of shape (4, 3) has no value yet; call initialise(module, seed), or "
      "load a checkpoint into the module, and name the parameter in the module's `visit`");
  const auto named = parameters(module);
  CHECK(error_of<ValueError>([&] {
          module.in(Tensor::zeros({1, 3}));
        }).starts_with("[parameter] in.weight of shape (4, 3) has no value yet"));
  Linear copy = module.in;
  CHECK_THROWS_AS(copy.weight.value(), ValueError);
  initialise(copy, 1);
  CHECK_NOTHROW(copy.weight.value());
  CHECK_THROWS_AS(module.in.weight.value(), ValueError);
  module.in.weight.assign(Tensor::zeros({4, 3}));
  CHECK_NOTHROW(module.in.weight.value());
}

TEST_CASE("first values have the parameter's dtype") {
  Linear layer(3, 4);
  initialise(layer, 1);
  convert(layer, DType::float64);
  initialise(layer, 1);
  CHECK(layer.weight.dtype() == DType::float64);
}

TEST_CASE("a module without values has a number of parameters and can load a state") {
  InOut trained, loaded;
  CHECK(parameter_count(loaded) == 3 * 4 + 4 + 4 * 2 + 2);
  CHECK_THROWS_AS(state_of(loaded), ValueError);
  initialise(trained, 1);
  load_state(loaded, state_of(trained));
  CHECK(loaded.out.weight.value().values() == trained.out.weight.value().values());
}

TEST_CASE("initialisers have the standard deviation and the bounds that their papers give") {
  const double inside =
      1 / std::sqrt(3.0);  // of a uniform distribution, as a fraction of its bound
  const double xavier = std::sqrt(6.0 / 300), kaiming = std::sqrt(6.0 / 150);
  check(xavier_uniform(), {100, 200}, xavier * inside, xavier);
  check(kaiming_uniform(), {100, 50, 3}, kaiming * inside, kaiming);
  check(uniform(0.2), {100, 100}, 0.2 * inside, 0.2);
  check(normal(0.02), {100, 100}, 0.02, 0.2);
}

}  // namespace qkv::tests
