#include "cli/commands/fit_card.h"

#include <algorithm>
#include <span>

#include "cli/commands/fit_examples.h"

namespace qkv::commands {
namespace {

/// The winner's runs of the first cross-validation, which have each example once.
std::span<const VariantRun> first_folds(const FitResult& result) {
  return std::span(result.candidates.front().runs)
      .first(static_cast<std::size_t>(result.plan.folds));
}

ExpectedScore expected(const FitResult& result) {
  const auto scores = result.candidates.front().scores(result.metric);
  const auto folds = first_folds(result);
  if (evaluation_of(folds.front()).score_by(result.metric) < 0)  // a loss
    return expected_score(scores, result.plan.folds);
  Index examples = 0;
  for (const VariantRun& fold : folds) examples += evaluation_of(fold).count;
  return expected_fraction(scores, result.plan.folds, examples);
}

TokenCount held_out_tokens(const FitResult& result) {
  TokenCount sum;
  for (const VariantRun& fold : first_folds(result)) {
    sum.all += evaluation_of(fold).tokens.all;
    sum.unknown += evaluation_of(fold).tokens.unknown;
  }
  return sum;
}

double per_cent(Index part, Index whole) {
  return 100 * static_cast<double>(part) / std::max(static_cast<double>(whole), 1.0);
}

std::string data_section(const FitResult& result, const FitData& data) {
  const auto [all, unknown] = held_out_tokens(result);
  std::string text;
  for (const std::string& fact : data.facts) text += "- " + fact + "\n";
  return text + fmt::format(
                    "- {:.1f} % of the tokens of held-out examples are not in the vocabulary of "
                    "the others\n",
                    per_cent(unknown, all));
}

std::string method_section(const FitResult& result) {
  const SearchPlan& plan = result.plan;
  std::string text = fmt::format(
      "Cross-validation: {}. The best, \"{}\", was then trained on all of them{}; `config.toml` "
      "is its config.\n",
      search_described(plan), result.candidates.front().name,
      plan.seeds > 1 ? fmt::format(" with {} seeds, whose probabilities are averaged", plan.seeds)
                     : "");
  if (plan.fraction < 1)
    text += fmt::format("To keep to the time, each was trained for {:.1f} % of its steps.\n",
                        100 * plan.fraction);
  return text + "\n" + to_markdown(candidate_table(result));
}

std::string score_section(const FitResult& result) {
  std::string text = fmt::format("- {}, as the held-out examples say\n", expectation(result));
  if (const auto& test = result.model->outcome.test)
    text += fmt::format("- {} {:.4f} on {} test examples\n", result.metric,
                        value_of(*test, result.metric), test->count);
  const auto baseline = majority_baseline(evaluation_of(result.candidates.front().runs.front()));
  if (baseline)
    text += fmt::format("- accuracy {:.4f} for always answering \"{}\"\n", baseline->accuracy,
                        baseline->label);
  return text +
         "- the best of several candidates is chosen by the same examples, which makes the "
         "expected score a little too high\n";
}

std::string example_section(const FitResult& result) {
  const auto folds = first_folds(result);
  if (evaluation_of(folds.front()).probabilities.empty()) return "";
  return fmt::format(
      "## Examples\n\nThe held-out examples whose labels get the lowest probabilities, as the "
      "model "
      "reads them: labels to check, or what it cannot do.\n\n{}\nThe words that lower the loss of "
      "each label's held-out examples the most, in {} (gradient × input, Shrikumar et al. "
      "2016).\n\n{}\n",
      to_markdown(worst_examples(folds)), result.candidates.front().members.front(),
      to_markdown(telling_words(folds.front().folder)));
}

/// Means over the folds of the first cross-validation of the winner.
std::string label_section(const FitResult& result) {
  Cells rows = {{"label", "precision", "recall", "F1", "examples"}};
  const auto folds = first_folds(result);
  for (const LabelScores& first : evaluation_of(folds.front()).labels) {
    double precision = 0, recall = 0, f1 = 0;
    Index examples = 0;
    for (const VariantRun& fold : folds)
      for (const LabelScores& scores : evaluation_of(fold).labels)
        if (scores.label == first.label) {
          precision += scores.precision;
          recall += scores.recall;
          f1 += scores.f1;
          examples += scores.count;
        }
    const auto count = static_cast<double>(folds.size());
    rows.push_back({first.label, fmt::format("{:.3f}", precision / count),
                    fmt::format("{:.3f}", recall / count), fmt::format("{:.3f}", f1 / count),
                    fmt::format("{}", examples)});
  }
  return to_markdown(rows);
}

}  // namespace

Json to_json(const FitResult& result) {
  const auto [mean, low, high] = expected(result);
  Json json = object({{"run", result.run},
                      {"metric", result.metric},
                      {"winner", result.candidates.front().name},
                      {"members", result.candidates.front().members},
                      {"expected", object({{"mean", mean}, {"low", low}, {"high", high}})},
                      {"folds", result.plan.folds},
                      {"repeats", result.plan.repeats},
                      {"halves", result.plan.halves},
                      {"fraction", result.plan.fraction},
                      {"seeds", result.plan.seeds},
                      {"candidates", to_json(result.candidates, result.metric)}});
  if (const auto& test = result.model->outcome.test) json["test"] = qkv::to_json(*test);
  return json;
}

Cells candidate_table(const FitResult& result) {
  return candidate_table(to_json(result.candidates, result.metric), result.metric, "folds");
}

std::string expectation(const FitResult& result) {
  const auto [mean, low, high] = expected(result);
  return fmt::format(
      "{} {:.4f}; on as many new examples as a fold has between {:.4f} and {:.4f} (95 %)",
      result.metric, mean, low, high);
}

std::string search_described(const SearchPlan& plan) {
  return fmt::format("{} candidates are compared on {} folds of the training examples{}{}",
                     plan.candidates.size(), plan.folds,
                     plan.repeats > 1 ? fmt::format(", drawn {} times", plan.repeats) : "",
                     plan.halves ? ", and the worse half of them is left out after each fold" : "");
}

std::string card_of(const FitResult& result, const FitData& data) {
  return fmt::format(
      "# {}\n\nA model by `qkv fit`.\n\n## Data\n\n{}\n## Method\n\n{}\n## Score\n\n{}\n"
      "## Labels\n\nMeans over the folds.\n\n{}\n{}## Limits\n\n"
      "- It gives one of these {} labels to any text, also to one that is about something else.\n"
      "- It knows the {} tokens of its training examples; others are read as `<unk>`.\n"
      "- Its probabilities are no better calibrated than `qkv eval` says (`calibration_error`).\n",
      result.run, data_section(result, data), method_section(result), score_section(result),
      label_section(result), example_section(result), data.task->labels().size(),
      data.task->vocabulary().size());
}

}  // namespace qkv::commands
