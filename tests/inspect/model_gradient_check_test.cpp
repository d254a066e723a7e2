#include "inspect/model_gradient_check.h"

#include <doctest/doctest.h>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

namespace {

Config small_config() {
  Config config;
  config.name = "small";
  config.task.train = QKV_SOURCE_DIR "/datasets/bank/valid.tsv";
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
class WrongGradient final : public Task {
 public:
  WrongGradient(const Config& config, std::unique_ptr<Task> task, const Parameter& parameter)
      : Task(config), task_(std::move(task)), parameter_(parameter) {}

  Index size(Split split) const override { return task_->size(split); }
  void for_each_ids_of(Split split, const IdsSink& sink) const override {
    task_->for_each_ids_of(split, sink);
  }
  LabelledText example(Split split, Index i) const override { return task_->example(split, i); }
  Index tokens(Index example) const override { return task_->tokens(example); }
  BatchLoss loss(const Network& network, std::span<const Index> examples,
                 Context& context) const override {
    BatchLoss right = task_->loss(network, examples, context);
    const Tensor& x = parameter_.value();
    const Tensor zero = record("wrong", Tensor::scalar(0, x.dtype()), {x},
                               [x = x.detach()](const Tensor&, InputGradients& inputs) {
                                 inputs.add(0, Tensor::full(x.shape(), 1e-4, x.dtype()));
                               });
    return {right.value + zero, right.targets, right.weight};
  }
  using Task::evaluate;
  Evaluation evaluate(const Network& network, Split split,
                      const EvaluationOptions& options) const override {
    return task_->evaluate(network, split, options);
  }
  Evaluation evaluate(const Network& network, const std::filesystem::path& file,
                      ReadCallback& callback, const EvaluationOptions& options) const override {
    return task_->evaluate(network, file, callback, options);
  }
  std::vector<std::string> metric_names() const override { return task_->metric_names(); }

 private:
  std::unique_ptr<Task> task_;
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
    CHECK(result.parameters.size() == run.parameters.size());
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
