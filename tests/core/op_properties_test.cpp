#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <string>

#include "core/gradient_check.h"
#include "core/parallel.h"
#include "tests/core/op_cases.h"

namespace qkv::tests {
namespace {

/// The value of a case and its gradients by all inputs, for a fixed random weighting of the output.
struct Outcome {
  Tensor value;
  std::vector<Tensor> gradients;
};

Outcome outcome_of(const OpCase& sample, DType dtype) {
  const In inputs = inputs_of(sample, dtype);
  std::vector<Parameter> parameters(inputs.begin(), inputs.end());
  const Tensor y = sample.call({parameters.begin(), parameters.end()});
  const OpCase weights{"", "", {y.shape()}, {}};
  const Gradients gradients = gradients_of(sum(y * inputs_of(weights, dtype)[0]));
  Outcome outcome{y.detach(), {}};
  for (const Parameter& parameter : parameters)
    outcome.gradients.push_back(gradients.of(parameter));
  return outcome;
}

double worst_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const auto x = a.values(), y = b.values();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, std::abs(x[i] - y[i]) / std::max(1.0, std::abs(x[i])));
  return worst;
}

}  // namespace

TEST_CASE("every op's gradient agrees with central differences in float64") {
  for (const OpCase& sample : op_cases()) {
    CAPTURE(sample.label());
    const GradientCheck check = check_gradients(inputs_of(sample, DType::float64), sample.call);
    CAPTURE(check.parameter);
    CAPTURE(check.element);
    CHECK(check.error < 1e-8);
  }
}

TEST_CASE("every op gives float32 values and gradients close to float64") {
  for (const OpCase& sample : op_cases()) {
    CAPTURE(sample.label());
    const Outcome single = outcome_of(sample, DType::float32),
                  twice = outcome_of(sample, DType::float64);
    CHECK(worst_difference(twice.value, single.value) < 3e-6);
    for (std::size_t i = 0; i < single.gradients.size(); ++i)
      CHECK(worst_difference(twice.gradients[i], single.gradients[i]) < 1e-5);
  }
}

TEST_CASE(
    "every op gives the same gradients whether its graph is held or freed while it is walked") {
  for (const OpCase& sample : op_cases()) {
    CAPTURE(sample.label());
    const In inputs = inputs_of(sample, DType::float32);
    const std::vector<Parameter> parameters(inputs.begin(), inputs.end());
    // An op may overwrite a buffer that the graph alone holds (buffer donation).
    const auto loss = [&] {
      In computed;
      for (const Parameter& parameter : parameters) computed.push_back(parameter * 1);
      const Tensor y = sample.call(computed);
      return mean(y * y);
    };
    const Tensor held = loss();
    const Gradients expected = gradients_of(held), freed = gradients_of(loss());
    for (const Parameter& parameter : parameters)
      CHECK(freed.of(parameter).values() == expected.of(parameter).values());
    CHECK(gradients_of(held).of(parameters[0]).values() == expected.of(parameters[0]).values());
  }
}

TEST_CASE("an op that recomputes its input in backward gives the gradients of the saved input") {
  const In drawn = inputs_of({"", "", {{4, 6}, {6}, {6}, {3, 6}}, {}}, DType::float32);
  const Parameter x(drawn[0]), gain(drawn[1]), bias(drawn[2]), w(drawn[3]);
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
  for (const OpCase& sample : op_cases()) {
    CAPTURE(sample.label());
    const In inputs = inputs_of(sample, DType::float64);
    sample.call(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      CHECK(inputs[i].values() == inputs_of(sample, DType::float64)[i].values());
  }
}

TEST_CASE(
    "every op records nothing while gradients are off or for constants, and computes the same") {
  for (const OpCase& sample : op_cases()) {
    CAPTURE(sample.label());
    const In inputs = inputs_of(sample, DType::float32);
    const std::vector<Parameter> parameters(inputs.begin(), inputs.end());
    const In tracked(parameters.begin(), parameters.end());
    const Tensor recorded = sample.call(tracked);
    CHECK(recorded.node());
    CHECK_FALSE(sample.call(inputs).node());
    const NoGrad no_grad;
    const Tensor y = sample.call(tracked);
    CHECK_FALSE(y.node());
    CHECK(y.values() == recorded.values());
  }
}

TEST_CASE("every op of core/ops.h has a row in the table of op samples") {
  std::ifstream header(QKV_SOURCE_DIR "/core/ops.h");
  std::set<std::string> declared;
  for (std::string line; std::getline(header, line);)
    for (const std::string result : {"Tensor ", "std::vector<Tensor> ", "TopK "})
      if (line.starts_with(result))
        declared.insert(line.substr(result.size(), line.find('(') - result.size()));
  CHECK(declared.size() > 20);
  declared.erase("attention_weights");  // constants, tested with attention and rotary
  declared.erase("rotary_cos_sin");
  std::set<std::string> sampled;
  for (const OpCase& sample : op_cases()) sampled.insert(sample.op);
  for (const std::string& name : declared) {
    CAPTURE(name);
    CHECK(sampled.contains(name));
  }
}

TEST_CASE("results do not depend on the number of threads, bit for bit") {
  const int before = threads();
  const auto uniform = [](const Shape& shape) {
    return inputs_of({"", "", {shape}, {}}, DType::float32)[0];
  };
  const auto run = [&](int count) {
    set_threads(count);
    const Parameter x(uniform({64, 24, 96})), w(uniform({96, 96})), b(uniform({96}));
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
