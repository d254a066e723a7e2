#include "train/word_sense.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "datasets/batch.h"
#include "datasets/text.h"

namespace qkv {
namespace {

constexpr std::size_t evaluation_batch = 64;

WordSenseSplits read_splits(const Config& config) {
  const TaskOptions& task = config.task;
  if (task.format == DataFormat::coarsewsd) {
    WordSenseSplits splits = read_coarsewsd(task.data, task.valid_share, config.seed);
    for (auto* examples : {&splits.train, &splits.valid, &splits.test})
      for (WordSenseExample& example : *examples)
        example = cropped(example, config.model.max_length);
    return splits;
  }
  return {read_word_sense_tsv(task.train),
          task.valid.empty() ? std::vector<WordSenseExample>() : read_word_sense_tsv(task.valid),
          task.test.empty() ? std::vector<WordSenseExample>() : read_word_sense_tsv(task.test)};
}

/// The file or folder of a split.
const std::string& source(const TaskOptions& task, Split split) {
  if (task.format == DataFormat::coarsewsd) return task.data;
  return split == Split::train ? task.train : split == Split::valid ? task.valid : task.test;
}

template <class Get>
std::vector<std::string> distinct(const std::vector<WordSenseExample>& examples, Get get) {
  std::set<std::string> found;
  for (const WordSenseExample& example : examples) found.insert(get(example));
  return {found.begin(), found.end()};
}

/// Accuracy, recall and macro F1, the mean over labels of 2 precision recall / (precision +
/// recall), from counts[right label][given label].
void score(Evaluation& evaluation, const std::vector<std::vector<Index>>& counts,
           const std::vector<std::string>& labels) {
  Index right = 0;
  double macro_f1 = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    Index of_label = 0, given = 0;
    for (std::size_t j = 0; j < labels.size(); ++j) of_label += counts[i][j], given += counts[j][i];
    right += counts[i][i];
    const auto ratio = [](double a, Index b) { return b ? a / static_cast<double>(b) : 0.0; };
    evaluation.recall[labels[i]] = ratio(static_cast<double>(counts[i][i]), of_label);
    macro_f1 += ratio(2.0 * static_cast<double>(counts[i][i]), of_label + given) /
                static_cast<double>(labels.size());
  }
  const double accuracy =
      evaluation.count ? static_cast<double>(right) / static_cast<double>(evaluation.count) : 0.0;
  evaluation.metrics = {{"accuracy", accuracy}, {"macro_f1", macro_f1}};
  evaluation.score = accuracy;
}

}  // namespace

WordSense::WordSense(const Config& config) : max_length_(config.model.max_length) {
  const WordSenseSplits splits = read_splits(config);
  std::vector<std::vector<std::string>> sentences;
  for (const WordSenseExample& example : splits.train) sentences.push_back(example.words);
  vocabulary_ = Vocabulary::build(sentences, config.task.min_count);
  labels_ = distinct(splits.train, [](const auto& e) { return e.label; });
  targets_ = distinct(splits.train,
                      [](const auto& e) { return e.words[static_cast<std::size_t>(e.index)]; });
  require<UserError>(labels_.size() >= 2,
                     "{}: there is only the label {}; senses need at least two",
                     source(config.task, Split::train), labels_[0]);
  splits_ = {encoded(splits.train, source(config.task, Split::train)),
             encoded(splits.valid, source(config.task, Split::valid)),
             encoded(splits.test, source(config.task, Split::test))};
}

WordSense::WordSense(const Config& config, const Vocabularies& vocabularies)
    : max_length_(config.model.max_length),
      vocabulary_(token_list(vocabularies, "tokens")),
      labels_(token_list(vocabularies, "labels")),
      targets_(token_list(vocabularies, "targets")) {}

Task::Vocabularies WordSense::vocabularies() const {
  return {{"tokens", vocabulary_->tokens()}, {"labels", labels_}, {"targets", targets_}};
}

WordSense::Example WordSense::encoded(const WordSenseExample& example) const {
  require<UserError>(std::ssize(example.words) <= max_length_,
                     "the sentence has {} words, more than model.max_length = {}",
                     example.words.size(), max_length_);
  const auto label = std::ranges::find(labels_, example.label);
  require<UserError>(label != labels_.end(), "the label {} does not occur in the training data",
                     example.label);
  Example result{{},
                 static_cast<std::int32_t>(example.index),
                 static_cast<std::int32_t>(label - labels_.begin())};
  for (const std::string& word : example.words) result.ids.push_back(vocabulary_->id(word));
  return result;
}

std::vector<WordSense::Example> WordSense::encoded(const std::vector<WordSenseExample>& examples,
                                                   const std::string& source) const {
  std::vector<Example> result;
  for (const WordSenseExample& example : examples) try {
      result.push_back(encoded(example));
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}:{}: {}", source, result.size() + 1, error.what()));
    }
  return result;
}

WordSense::Batch WordSense::batch(std::span<const Example* const> examples) const {
  std::vector<std::vector<std::int32_t>> sentences;
  std::vector<std::int32_t> rows, labels;
  for (const Example* example : examples) {
    sentences.push_back(example->ids);
    rows.push_back(example->index);
    labels.push_back(example->label);
  }
  const TokenBatch padded = pad(sentences);
  const Shape shape{std::ssize(examples)};
  return {padded.ids, padded.lengths, Indices(rows, shape), Indices(labels, shape)};
}

Tensor WordSense::logits(const Network& network, const Batch& batch, Context& context) const {
  return network.logits(
      select_rows((*network.model)(batch.ids, batch.lengths, context), batch.rows));
}

BatchLoss WordSense::loss(const Network& network, std::span<const Index> indices,
                          Context& context) const {
  std::vector<const Example*> chosen;
  for (const Index i : indices)
    chosen.push_back(&examples(Split::train).at(static_cast<std::size_t>(i)));
  const Batch examples = batch(chosen);
  const auto lengths = examples.lengths.data();
  return {cross_entropy(logits(network, examples, context), examples.labels),
          std::accumulate(lengths.begin(), lengths.end(), Index{0})};
}

Evaluation WordSense::evaluate(const Network& network, std::span<const Example> examples) const {
  const NoGrad no_grad;
  Context context;
  Evaluation evaluation;
  evaluation.count = std::ssize(examples);
  std::vector<std::vector<Index>> counts(labels_.size(), std::vector<Index>(labels_.size()));
  for (std::size_t begin = 0; begin < examples.size(); begin += evaluation_batch) {
    std::vector<const Example*> chosen;
    for (const Example& example :
         examples.subspan(begin, std::min(evaluation_batch, examples.size() - begin)))
      chosen.push_back(&example);
    const Batch part = batch(chosen);
    const Tensor scores = logits(network, part, context);
    evaluation.loss +=
        cross_entropy(scores, part.labels).item() * static_cast<double>(chosen.size());
    const auto values = scores.data<float>();
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto row = values.subspan(i * labels_.size(), labels_.size());
      const auto given = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
      ++counts[static_cast<std::size_t>(chosen[i]->label)][given];
    }
  }
  if (evaluation.count) evaluation.loss /= static_cast<double>(evaluation.count);
  score(evaluation, counts, labels_);
  return evaluation;
}

Evaluation WordSense::evaluate(const Network& network, Split split) const {
  return evaluate(network, examples(split));
}

Evaluation WordSense::evaluate(const Network& network, const std::filesystem::path& file) const {
  return evaluate(network, encoded(read_word_sense_tsv(file), file.string()));
}

Sentence WordSense::read(std::string_view text) const {
  Sentence sentence{tokenized(text), {}, {}};
  require<UserError>(!sentence.words.empty(), "the sentence is empty; give at least one word");
  require<UserError>(
      std::ssize(sentence.words) <= max_length_,
      "the sentence has {} words, more than the model's longest, model.max_length = {}",
      sentence.words.size(), max_length_);
  for (const std::string& word : sentence.words) {
    if (std::ranges::find(targets_, word) != targets_.end())
      sentence.targets.push_back(std::ssize(sentence.ids));
    sentence.ids.push_back(vocabulary_->id(word));
  }
  return sentence;
}

std::vector<Prediction> WordSense::predict(const Network& network, std::string_view text) const {
  const Sentence sentence = read(text);
  const std::string known = fmt::format("{}", fmt::join(targets_, ", "));
  require<UserError>(!sentence.targets.empty(),
                     "\"{}\" has none of the words whose sense the model tells: {}", text, known);
  const NoGrad no_grad;
  Context context;
  std::vector<Prediction> predictions;
  for (const Index target : sentence.targets) {
    const Example example{sentence.ids, static_cast<std::int32_t>(target), 0};
    const Example* const one[] = {&example};
    const auto probabilities = softmax(logits(network, batch(one), context)).values();
    const auto best = std::ranges::max_element(probabilities);
    predictions.push_back({std::string(text), target,
                           labels_[static_cast<std::size_t>(best - probabilities.begin())], *best});
  }
  return predictions;
}

}  // namespace qkv
