#include "train/tasks/sentence_task.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "datasets/batch.h"
#include "datasets/text.h"
#include "train/tasks/splits.h"

namespace qkv {
namespace {

constexpr Index evaluation_batch = 64;

using Counts = std::vector<std::vector<Index>>;

double ratio(double a, Index b) {
  return b ? a / static_cast<double>(b) : 0.0;
}

template <class Get>
std::vector<std::string> distinct(const SentenceExamples& examples, Get get) {
  std::set<std::string> found;
  for (const SentenceExample& example : examples) found.insert(get(example));
  return {found.begin(), found.end()};
}

/// Each label's recall, and macro F1, the mean over labels of 2 precision recall / (precision +
/// recall), from counts[right label][given label]. Labels that neither the data nor the answers
/// have do not count, as in scikit-learn.
void score_labels(Evaluation& evaluation, const Counts& counts,
                  const std::vector<std::string>& labels) {
  double sum = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    Index of_label = 0, given = 0;
    for (std::size_t j = 0; j < labels.size(); ++j) of_label += counts[i][j], given += counts[j][i];
    if (of_label + given == 0) continue;
    const auto right = static_cast<double>(counts[i][i]);
    evaluation.recall[labels[i]] = ratio(right, of_label);
    sum += ratio(2 * right, of_label + given);
  }
  evaluation.metrics.emplace_back("macro_f1", ratio(sum, std::ssize(evaluation.recall)));
}

}  // namespace

void SentenceTask::learn(const Config& config) {
  const TaskOptions& task = config.task;
  std::array<SentenceExamples, 3> splits;
  if (task.format == DataFormat::coarsewsd) {
    auto [train, valid, test] = read_coarsewsd(task.data, task.valid_share, config.seed);
    for (auto* examples : {&train, &valid, &test})
      for (SentenceExample& example : *examples) example = cropped(example, max_length_);
    splits = {train, valid, test};
  } else {
    splits = read_splits(config, [&](const std::string& file) { return read_file(file); });
  }
  const SentenceExamples& train = splits[0];
  const std::string& source = task.data.empty() ? task.train : task.data;
  require<UserError>(!train.empty(),
                     "{}: task.valid_share and task.test_share leave no example to learn from",
                     source);
  std::vector<std::vector<std::string>> sentences;
  for (const SentenceExample& example : train) sentences.push_back(example.words);
  vocabulary_ = Vocabulary::build(sentences, task.min_count);
  if (answers_are_labels()) {
    labels_ = distinct(train, [](const auto& e) { return e.label; });
    require<UserError>(labels_.size() >= 2, "{}: there is only the label {}; there must be two",
                       source, labels_[0]);
  }
  if (asks_about_a_word())
    targets_ =
        distinct(train, [](const auto& e) { return e.words[static_cast<std::size_t>(e.index)]; });
  for (std::size_t i = 0; i < splits.size(); ++i) splits_[i] = encoded(splits[i]);
}

void SentenceTask::restore(const Vocabularies& vocabularies) {
  vocabulary_.emplace(token_list(vocabularies, "tokens"));
  if (answers_are_labels()) labels_ = token_list(vocabularies, "labels");
  if (asks_about_a_word()) targets_ = token_list(vocabularies, "targets");
}

Task::Vocabularies SentenceTask::vocabularies() const {
  Vocabularies lists = {{"tokens", vocabulary_->tokens()}};
  if (answers_are_labels()) lists["labels"] = labels_;
  if (asks_about_a_word()) lists["targets"] = targets_;
  return lists;
}

SentenceTask::Example SentenceTask::encoded(const SentenceExample& example) const {
  require<UserError>(std::ssize(example.words) <= max_length_,
                     "{}: the sentence has {} words, more than model.max_length = {}",
                     example.place, example.words.size(), max_length_);
  Index answer = example.antecedent;
  if (answers_are_labels()) {
    answer = std::ranges::find(labels_, example.label) - labels_.begin();
    if (answer == std::ssize(labels_))
      throw UserError(fmt::format("{}: unknown label \"{}\"; the training data has: {}",
                                  example.place, example.label, fmt::join(labels_, ", ")));
  }
  Example result{{}, static_cast<std::int32_t>(example.index), static_cast<std::int32_t>(answer)};
  for (const std::string& word : example.words) result.ids.push_back(vocabulary_->id(word));
  return result;
}

std::vector<SentenceTask::Example> SentenceTask::encoded(const SentenceExamples& examples) const {
  std::vector<Example> result;
  for (const SentenceExample& example : examples) result.push_back(encoded(example));
  return result;
}

SentenceTask::Batch SentenceTask::batch(const std::vector<Example>& examples,
                                        std::span<const Index> chosen) {
  std::vector<std::vector<std::int32_t>> sentences;
  std::vector<std::int32_t> rows, answers;
  for (const Index i : chosen) {
    const Example& example = examples.at(static_cast<std::size_t>(i));
    sentences.push_back(example.ids);
    rows.push_back(example.index);
    answers.push_back(example.answer);
  }
  const TokenBatch padded = pad(sentences);
  const Shape shape{std::ssize(chosen)};
  return {padded.ids, padded.lengths, Indices(rows, shape), Indices(answers, shape)};
}

Index SentenceTask::tokens(Index example) const {
  return std::ssize(examples(Split::train).at(static_cast<std::size_t>(example)).ids);
}

BatchLoss SentenceTask::loss(const Network& network, std::span<const Index> chosen,
                             Context& context) const {
  const Batch part = batch(examples(Split::train), chosen);
  return {cross_entropy(logits(network, part, context), part.answers), std::ssize(chosen)};
}

Evaluation SentenceTask::evaluate(const Network& network,
                                  const std::vector<Example>& examples) const {
  Index right = 0;
  Counts counts(labels_.size(), std::vector<Index>(labels_.size()));
  const auto measure = [&](std::span<const Index> chosen, Context& context) -> BatchLoss {
    const Batch part = batch(examples, chosen);
    const Tensor scores = logits(network, part, context);
    const auto values = scores.data<float>();
    const auto choices = static_cast<std::size_t>(scores.dim(1));
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto row = values.subspan(i * choices, choices);
      const auto given = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
      const auto answer = static_cast<std::size_t>(part.answers.data()[i]);
      right += given == answer;
      if (answers_are_labels()) ++counts[answer][given];
    }
    return {cross_entropy(scores, part.answers), std::ssize(chosen)};
  };
  Evaluation evaluation;
  evaluation.count = std::ssize(examples);
  evaluation.loss = mean_loss(evaluation.count, evaluation_batch, measure);
  evaluation.score = ratio(static_cast<double>(right), evaluation.count);
  evaluation.metrics = {{"accuracy", evaluation.score}};
  if (answers_are_labels()) score_labels(evaluation, counts, labels_);
  return evaluation;
}

Evaluation SentenceTask::evaluate(const Network& network, Split split) const {
  return evaluate(network, examples(split));
}

Evaluation SentenceTask::evaluate(const Network& network, const std::filesystem::path& file) const {
  return evaluate(network, encoded(read_file(file)));
}

Sentence SentenceTask::read(std::string_view text) const {
  Sentence sentence = read_sentence(text, *vocabulary_, max_length_);
  for (Index i = 0; i < std::ssize(sentence.words); ++i)
    if (std::ranges::find(targets_, sentence.words[static_cast<std::size_t>(i)]) != targets_.end())
      sentence.targets.push_back(i);
  return sentence;
}

void SentenceTask::require_targets(const Sentence& sentence, std::string_view text) const {
  const std::string known = fmt::format("{}", fmt::join(targets_, ", "));
  require<UserError>(!sentence.targets.empty(),
                     "\"{}\" has none of the words that the model was trained on: {}", text, known);
}

Scores SentenceTask::scores(const Network& network, const Sentence& sentence, Index index,
                            Context& context) const {
  const std::vector<Example> one = {{sentence.ids, static_cast<std::int32_t>(index), 0}};
  const Index first[] = {0};
  return {reshape(logits(network, batch(one, first), context), {-1}),
          answers_are_labels() ? labels_ : sentence.words, formula()};
}

std::vector<Prediction> SentenceTask::predictions(const Network& network,
                                                  std::string_view text) const {
  const NoGrad no_grad;
  Context context;
  const Sentence sentence = read(text);
  if (!asks_about_a_word())
    return {prediction_of(text, std::nullopt, scores(network, sentence, 0, context))};
  require_targets(sentence, text);
  std::vector<Prediction> result;
  for (const Index target : sentence.targets)
    result.push_back(prediction_of(text, target, scores(network, sentence, target, context)));
  return result;
}

}  // namespace qkv
