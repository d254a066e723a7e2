#include "train/fit/ensemble_selection.h"

#include <doctest/doctest.h>

#include <cmath>

#include "train/tasks/choice_metrics.h"

using namespace qkv;

namespace {

const std::vector<std::string> labels = {"a", "b"};

/// Examples with label a, given the probability of it for each.
Evaluation fold(const std::vector<double>& probabilities) {
  std::vector<double> logits;
  for (const double p : probabilities)
    for (const double value : {p, 1 - p}) logits.push_back(std::log(value));
  const auto count = std::ssize(probabilities);
  ChoiceMetrics metrics(labels);
  metrics.keep_probabilities();
  metrics.update(Tensor::from(logits, {count, 2}),
                 Indices(std::vector<std::int32_t>(probabilities.size()), {count}));
  Evaluation evaluation;
  evaluation.count = count;
  metrics.report(evaluation);
  return evaluation;
}

using Candidates = std::vector<std::vector<Evaluation>>;

}  // namespace

TEST_CASE("candidates are added as long as the mean score of the folds rises") {
  const Candidates candidates = {
      {fold({0.9, 0.9, 0.4, 0.45}), fold({0.9, 0.4, 0.3, 0.9})},  // 2 and 2 of 4 right
      {fold({0.4, 0.4, 0.8, 0.4}), fold({0.2, 0.3, 0.2, 0.3})},   // helps one
      {fold({0.9, 0.2, 0.9, 0.9}), fold({0.9, 0.9, 0.2, 0.9})},   // helps three, harms none
  };
  const SelectedEnsemble found = selected_ensemble(candidates, "accuracy");
  CHECK(found.members == std::vector<std::size_t>{0, 2});
  REQUIRE(found.folds.size() == 2);
  CHECK(found.folds[0].metric("accuracy") == 1);
  CHECK(found.folds[1].metric("accuracy") == 0.75);
}

TEST_CASE("a candidate that no other helps stays alone, with its own evaluations") {
  const Candidates candidates = {{fold({0.9, 0.9})}, {fold({0.2, 0.9})}, {fold({0.9, 0.9})}};
  const SelectedEnsemble found = selected_ensemble(candidates, "accuracy");
  CHECK(found.members == std::vector<std::size_t>{0});
  CHECK(found.folds[0].probabilities == candidates[0][0].probabilities);
  CHECK(selected_ensemble(candidates, "log_loss").members == std::vector<std::size_t>{0});
}

TEST_CASE("a candidate that helps by no more than the standard error is not added") {
  const auto right = fold({0.9, 0.9, 0.9, 0.4}), all = fold({0.9, 0.9, 0.9, 0.9});
  // Better by .25 in one fold of four: the mean is .0625, the standard error as well.
  CHECK(selected_ensemble(Candidates{{right, right, right, right}, {right, right, right, all}},
                          "accuracy")
            .members == std::vector<std::size_t>{0});
  CHECK(selected_ensemble(Candidates{{right, right, right, right}, {right, right, all, all}},
                          "accuracy")
            .members == std::vector<std::size_t>{0, 1});
}

TEST_CASE("a loss falls where a score rises") {
  const Candidates candidates = {{fold({0.8, 0.2})}, {fold({0.2, 0.7})}};
  CHECK(selected_ensemble(candidates, "log_loss").members == std::vector<std::size_t>{0, 1});
}
