#include "train/tasks/ensemble.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "train/tasks/choice_metrics.h"

using namespace qkv;

namespace {

const std::vector<std::string> labels = {"a", "b"};

/// An evaluation of two examples, with label a and b.
Evaluation evaluation_of(std::vector<double> probabilities) {
  for (double& p : probabilities) p = std::log(p);
  ChoiceMetrics metrics(labels);
  metrics.keep_probabilities();
  metrics.update(Tensor::from(probabilities, {2, 2}), Indices({0, 1}, {2}));
  Evaluation evaluation;
  evaluation.count = 2;
  metrics.report(evaluation);
  return evaluation;
}

Prediction prediction(std::vector<double> probabilities) {
  Prediction one{.text = "t", .index = 1, .label = "", .probability = 0, .choices = labels};
  one.probabilities = std::move(probabilities);
  return one;
}

}  // namespace

TEST_CASE("several models evaluate as one with the mean of their probabilities") {
  // The first is wrong about the second example, the second about the first; the first is surer.
  const std::vector<Evaluation> both = {evaluation_of({0.9, 0.1, 0.6, 0.4}),
                                        evaluation_of({0.3, 0.7, 0.2, 0.8})};
  CHECK(both[0].metric("accuracy") == 0.5);
  const Evaluation together = averaged(both);
  CHECK(together.count == 2);
  CHECK(together.metric("accuracy") == 1);
  CHECK(together.metric("macro_f1") == 1);
  CHECK(together.loss == doctest::Approx(-(std::log(0.6) + std::log(0.6)) / 2));
  CHECK(together.metric("log_loss") == doctest::Approx(-std::log(0.6)));
  CHECK(together.metric("calibration_error") == doctest::Approx(0.4));
}

TEST_CASE("models of other labels, examples or tasks have no average") {
  const Evaluation one = evaluation_of({0.9, 0.1, 0.6, 0.4});
  const auto error = [&](const Evaluation& other) {
    return error_of<UserError>([&] { averaged(std::vector<Evaluation>{one, other}); });
  };
  Evaluation other = one;
  other.labels[0].label = "c";
  CHECK(error(other) == "the models have different labels");
  other = one;
  other.answers = {1, 0};
  CHECK(error(other).starts_with("the models were measured on different examples"));
  CHECK(error({}) == "only models that choose a label for each example can be averaged");
}

TEST_CASE("several models predict as one with the mean of their probabilities") {
  const Prediction together =
      averaged(std::vector<Prediction>{prediction({0.9, 0.1}), prediction({0.4, 0.6})});
  CHECK(together.label == "a");
  CHECK(together.index == 1);
  CHECK(together.probability == doctest::Approx(0.65));
  Prediction other = prediction({0.9, 0.1});
  other.choices = {"a", "c"};
  CHECK(error_of<UserError>([&] {
          averaged(std::vector<Prediction>{prediction({0.9, 0.1}), other});
        }) == "\"t\": the models choose among different labels");
  other.is_output = true;
  CHECK(error_of<UserError>([&] {
          averaged(std::vector<Prediction>{other, other});
        }) == "only models that choose among labels or words can be averaged");
}
