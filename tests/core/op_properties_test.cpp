#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "core/gradient_check.h"
#include "core/parallel.h"
#include "tests/ops/check_rows.h"
#include "tests/ops/samples.h"
#include "tests/support/randn.h"

namespace qkv::tests {
namespace {

using fuzz::In;
using fuzz::OpSample;

/// Calls f(inputs, call) for some calls of every op.
template <class F>
void for_each_call(DType dtype, F f) {
  for (const OpSample& sample : fuzz::op_samples()) {
    CAPTURE(sample.label());
    CAPTURE(sample.code());
    f(fuzz::inputs_of(sample.call, dtype),
      [&](const In& x) { return fuzz::output_of(sample.call, x); });
  }
}

}  // namespace

TEST_CASE("every op has the values and gradients of its formula") {
  fuzz::check_rows(fuzz::op_draws(), 40);
}

TEST_CASE("every op has the values and gradients of its formula for special values") {
  fuzz::check_rows(fuzz::op_draws(), 30, fuzz::Values::special);
}

TEST_CASE("attention has the values and gradients of its formula for many shapes and masks") {
  // Masks and sizes meet in more ways than other ops' operands do.
  for (const char* op : {"attention", "attention_weights"})
    fuzz::check_rows({{op, fuzz::op_draws().at(op)}}, 200);
}

TEST_CASE("every op's gradient agrees with central differences in float64") {
  for (const OpSample& sample : fuzz::op_samples()) {
    if (sample.detaches()) continue;
    CAPTURE(sample.label());
    CAPTURE(sample.code());
    const In inputs = fuzz::inputs_of(sample.call, DType::float64);
    std::vector<Parameter> parameters(inputs.begin(), inputs.end());
    std::vector<NamedParameter> named;
    for (Parameter& x : parameters) named.push_back({fmt::format("x{}", named.size()), &x});
    const auto loss = [&] {
      const Tensor y = fuzz::output_of(sample.call, {parameters.begin(), parameters.end()});
      return sum(y * randn(y.shape(), DType::float64));
    };
    for (const GradientCheck& check : check_each_gradient(named, loss, {.tolerance = 1e-8})) {
      CAPTURE(check.parameter);
      CAPTURE(check.element);
      CHECK(check.error < 1e-8);
    }
  }
}

TEST_CASE(
    "every op gives the same gradients whether its graph is held or freed while it is walked") {
  for_each_call(DType::float32, [](const In& inputs, const auto& call) {
    const std::vector<Parameter> parameters(inputs.begin(), inputs.end());
    // An op may overwrite a buffer that the graph alone holds (buffer donation).
    const auto loss = [&] {
      In computed;
      for (const Parameter& parameter : parameters) computed.push_back(parameter * 1);
      const Tensor y = call(computed);
      return mean(y * y);
    };
    const Tensor held = loss();
    const Gradients expected = gradients_of(held), freed = gradients_of(loss());
    for (const Parameter& parameter : parameters) {
      REQUIRE(freed.has(parameter) == expected.has(parameter));
      if (freed.has(parameter))
        CHECK(freed.of(parameter).values() == expected.of(parameter).values());
    }
    CHECK(gradients_of(held).of(parameters[0]).values() == expected.of(parameters[0]).values());
  });
}

TEST_CASE("an op that recomputes its input in backward gives the gradients of the saved input") {
  const DType dtype = DType::float32;
  const Parameter x(randn({4, 6}, dtype, 1)), gain(randn({6}, dtype, 2)),
      bias(randn({6}, dtype, 3)), w(randn({3, 6}, dtype, 4));
  for (const auto& normalised :
       {layer_norm(x, gain, bias), layer_norm(x, gain, Tensor()), rms_norm(x, gain)}) {
    const auto gradients = [&](const Tensor& h) {
      const Gradients all = gradients_of(sum(linear(h, w, Tensor()) * linear(h, w, Tensor())));
      return std::vector{all.of(x).values(), all.of(gain).values(), all.of(w).values()};
    };
    CHECK(normalised.node()->recomputable());
    CHECK(normalised.node()->recompute().values() == normalised.values());
    // A change of shape hides the op, so that its value is saved.
    CHECK(gradients(normalised) == gradients(reshape(normalised, {2, 2, 6})));
  }
}

TEST_CASE("every op leaves its inputs as they were") {
  for_each_call(DType::float64, [](const In& inputs, const auto& call) {
    std::vector<std::vector<double>> before;
    for (const Tensor& x : inputs) before.push_back(x.values());
    call(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) CHECK(inputs[i].values() == before[i]);
  });
}

TEST_CASE(
    "every op records nothing while gradients are off or for constants, and computes the same") {
  for_each_call(DType::float32, [](const In& inputs, const auto& call) {
    const std::vector<Parameter> parameters(inputs.begin(), inputs.end());
    const In tracked(parameters.begin(), parameters.end());
    const Tensor recorded = call(tracked);
    CHECK(recorded.node());
    CHECK_FALSE(call(inputs).node());
    const NoGrad no_grad;
    const Tensor y = call(tracked);
    const auto is_result = [&](const Parameter& x) { return x.node() == y.node().get(); };
    CHECK((!y.node() || std::ranges::any_of(parameters, is_result)));  // dropout of nothing
    CHECK(y.values() == recorded.values());
  });
}

TEST_CASE("every op of core/ops.h has a row in tests/ops, of which enough calls are ordinary") {
  std::ifstream header(QKV_SOURCE_DIR "/core/ops.h");
  std::size_t declared = 0;
  for (std::string line; std::getline(header, line);)
    for (const std::string result :
         {"Tensor ", "std::vector<Tensor> ", "Indices ", "TopK ", "RecurrentOutput "}) {
      if (!line.starts_with(result) || line.find('(') == std::string::npos) continue;
      const std::string name = line.substr(result.size(), line.find('(') - result.size());
      CAPTURE(name);
      CHECK(fuzz::op_draws().contains(name));
      CHECK(std::ranges::count(fuzz::op_samples(), name, &OpSample::op) == 8);
      ++declared;
    }
  CHECK(declared > 20);
}

TEST_CASE("results do not depend on the number of threads, bit for bit") {
  const int before = threads();
  const auto run = [&](int count) {
    set_threads(count);
    const Parameter x(randn({64, 24, 96})), w(randn({96, 96})), b(randn({96}));
    const AttentionMask mask{{}, true};
    const Tensor h = gelu(linear(layer_norm(x, b, b), w, b));
    const Tensor y = attention(h, h, h, mask, {.heads = 4, .scale = 0.2, .dropout = 0.1},
                               Random(1, Purpose::dropout));
    const Gradients gradients = gradients_of(mean(y * y));
    return std::vector{y.values(), gradients.of(x).values(), gradients.of(w).values(),
                       gradients.of(b).values()};
  };
  const auto one = run(1);
  CHECK(run(2) == one);
  CHECK(run(5) == one);
  set_threads(before);
}

}  // namespace qkv::tests
