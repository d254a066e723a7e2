#include "inspect/model_gradient_check.h"

#include <doctest/doctest.h>

#include "tests/support/errors.h"
#include "tests/support/forwarding_task.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

namespace {

Config small_config() {
  Config config;
  config.name = "small";
  config.task.train = QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";
  config.model = {.width = 8, .heads = 2, .feed_forward = 8};
  return config;
}

/// The paths with an error above the tolerance.
std::vector<std::string> wrong_of(const ModelGradientCheck& result) {
  std::vector<std::string> paths;
  for (const GradientCheck& check : result.parameters)
    if (!(check.error <= result.tolerance)) paths.push_back(check.parameter);
  return paths;
}

/// A task whose loss has the right value, and a gradient by one parameter that is off a little.
class WrongGradient final : public ForwardingTask {
 public:
  WrongGradient(const Config& config, std::shared_ptr<const Task> task, const Parameter& parameter)
      : ForwardingTask(config, std::move(task)), parameter_(parameter) {}

  BatchLoss loss(const Network& network, std::span<const Index> examples,
                 Context& context) const override {
    BatchLoss right = ForwardingTask::loss(network, examples, context);
    const Tensor& x = parameter_.value();
    const Tensor zero = record("wrong", Tensor::scalar(0, x.dtype()), {x},
                               [x = x.detach()](const Tensor&, InputGradients& inputs) {
                                 inputs.add(0, Tensor::full(x.shape(), 1e-4, x.dtype()));
                               });
    return {right.value + zero, right.targets, right.weight};
  }

 private:
  const Parameter& parameter_;
};

}  // namespace

TEST_CASE("every kind of model passes the gradient check, in training with dropout") {
  for (const ModelRow& row : model_kinds()) {
    CAPTURE(row.name);
    Config config = small_config();
    config.model.kind = row.value;
    config.model.dropout = 0.3;
    if (row.value == ModelKind::encoder_decoder) {
      config.task.kind = TaskKind::translate;
      config.task.train = QKV_SOURCE_DIR "/datasets/idiom/valid.tsv";
    }
    Run run = start_run(config);
    const ModelGradientCheck result = check_model_gradients(run);
    CHECK(result.parameters.size() + result.frozen.size() == run.parameters.size());
    CHECK(result.examples == 4);
    CHECK(wrong_of(result).empty());
    CHECK(result.passes());
    // The sample of the table is of words that the examples have, too.
    CHECK(result.parameters[0].analytic != 0);
  }
}

TEST_CASE("a gradient that is off by 1e-4 is noticed, in its parameter alone") {
  Run run = start_run(small_config());
  const auto wrong = std::ranges::find(run.parameters, "encoder.layers.0.attention.w_v.bias",
                                       &NamedParameter::path);
  REQUIRE(wrong != run.parameters.end());
  run.task = std::make_unique<WrongGradient>(run.config, std::move(run.task), *wrong->parameter);
  const ModelGradientCheck result = check_model_gradients(run);
  CHECK(!result.passes());
  CHECK(wrong_of(result) == std::vector{wrong->path});
  CHECK(result.worst().parameter == wrong->path);
  CHECK(result.worst().analytic - result.worst().numeric == doctest::Approx(1e-4).epsilon(1e-3));
}

TEST_CASE("frozen parameters have no gradient to be checked") {
  const TempDir dir;
  Config config = small_config();
  config.task.train =
      dir.write("train.tsv", "money\t1\tmoney bank\nriver\t1\triver bank\n").string();
  config.model.embedding = EmbeddingKind::one_hot;
  config.model.width = 5;  // three words, padding and the unknown word
  config.model.heads = 1;
  Run run = start_run(config);
  const ModelGradientCheck result = check_model_gradients(run);
  CHECK(result.frozen == std::vector<std::string>{"embedding.weight"});
  CHECK(result.passes());
  for (const auto& [path, parameter] : run.parameters) parameter->freeze();
  CHECK(error_of<UserError>([&] { check_model_gradients(run); }) ==
        "every parameter is frozen: there is no gradient to check");
}
