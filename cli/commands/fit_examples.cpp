#include "cli/commands/fit_examples.h"

#include <algorithm>
#include <map>

#include "inspect/loss_gradients.h"

namespace qkv::commands {
namespace {

struct Answer {
  double probability;  ///< of the right label
  std::size_t fold;
  Index example;
};

/// The example's probabilities of all labels.
std::span<const double> probabilities_of(const Evaluation& evaluation, Index example) {
  const std::size_t labels = evaluation.labels.size();
  return std::span(evaluation.probabilities)
      .subspan(static_cast<std::size_t>(example) * labels, labels);
}

/// The least probable first.
std::vector<Answer> worst_answers(std::span<const VariantRun> folds) {
  constexpr std::size_t shown = 10;
  std::vector<Answer> answers;
  for (std::size_t fold = 0; fold < folds.size(); ++fold) {
    const Evaluation& evaluation = evaluation_of(folds[fold]);
    for (std::size_t i = 0; i < evaluation.answers.size(); ++i) {
      const auto example = static_cast<Index>(i);
      const auto label = static_cast<std::size_t>(evaluation.answers[i]);
      answers.push_back({probabilities_of(evaluation, example)[label], fold, example});
    }
  }
  std::ranges::stable_sort(answers, {}, &Answer::probability);
  answers.resize(std::min(answers.size(), shown));
  return answers;
}

std::string most_probable(const Evaluation& evaluation, Index example) {
  const auto probabilities = probabilities_of(evaluation, example);
  const auto best = std::ranges::max_element(probabilities) - probabilities.begin();
  return evaluation.labels[static_cast<std::size_t>(best)].label;
}

/// The words that contribute the most, separated by commas.
std::string most_telling(const std::map<std::string, double>& contributions) {
  constexpr std::size_t shown = 10;
  std::vector<std::pair<double, std::string>> words;
  for (const auto& [word, sum] : contributions)
    if (sum > 0) words.emplace_back(-sum, word);
  std::ranges::sort(words);
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), shown); ++i)
    text += (text.empty() ? "" : ", ") + words[i].second;
  return text;
}

}  // namespace

Cells worst_examples(std::span<const VariantRun> folds) {
  Cells rows = {{"label", "probability", "answer", "text"}};
  std::map<std::size_t, std::shared_ptr<const Task>> tasks;
  for (const auto& [probability, fold, example] : worst_answers(folds)) {
    auto& task = tasks[fold];
    if (!task) {
      const std::string run = folds[fold].folder.string();
      task = drawn_task(load_model(run), run, silent_reading);
    }
    const LabelledText text = task->example(Split::test, example);
    rows.push_back({text.label, fmt::format("{:.4f}", probability),
                    most_probable(evaluation_of(folds[fold]), example), text.text});
  }
  return rows;
}

Cells telling_words(const std::filesystem::path& run) {
  constexpr Index most = 300;  // evenly over the held-out examples
  const LoadedModel model = load_model(run.string());
  const auto task = drawn_task(model, run.string(), silent_reading);
  std::map<std::string, std::map<std::string, double>> of_labels;
  const Index all = task->size(Split::test), count = std::min(all, most);
  for (Index i = 0; i < count; ++i) {
    const LabelledText text = task->example(Split::test, i * all / count);
    const auto contributions = loss_gradients(model, text).contributions;
    for (std::size_t word = 0; word < contributions.size(); ++word)
      if (!task->vocabulary().is_unknown(text.sentence.ids[word]))
        of_labels[text.label][text.sentence.words[word]] += contributions[word];
  }
  Cells rows = {{"label", "words"}};
  for (const auto& [label, words] : of_labels) rows.push_back({label, most_telling(words)});
  return rows;
}

}  // namespace qkv::commands
