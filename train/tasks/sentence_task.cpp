#include "train/tasks/sentence_task.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "datasets/batch.h"
#include "datasets/coarsewsd.h"
#include "train/tasks/naive_bayes.h"
#include "train/tasks/splits.h"

namespace qkv {
namespace {

double ratio(double a, Index b) {
  return b ? a / static_cast<double>(b) : 0.0;
}

template <class Get>
std::vector<std::string> distinct(const SentenceExamples& examples, Get get) {
  std::set<std::string> found;
  for (const SentenceExample& example : examples) found.insert(get(example));
  return {found.begin(), found.end()};
}

}  // namespace

void for_each_ids(const std::vector<EncodedSentence>& examples, const Task::IdsSink& sink) {
  for (const EncodedSentence& example : examples) {
    const std::int32_t rest[] = {example.index, example.answer, -1};  // -1 ends an example
    sink(example.ids);
    sink(rest);
  }
}

void ChoiceMetrics::update(const Tensor& scores, const Indices& answers) {
  const auto values = scores.data<float>();
  const auto choices = static_cast<std::size_t>(scores.dim(1));
  for (std::size_t i = 0; i < answers.data().size(); ++i) {
    const auto row = values.subspan(i * choices, choices);
    const auto predicted = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
    const auto answer = static_cast<std::size_t>(answers.data()[i]);
    right_ += predicted == answer;
    if (!labels_->empty()) ++counts_[answer][predicted];
  }
}

void ChoiceMetrics::report(Evaluation& evaluation) const {
  evaluation.score = ratio(static_cast<double>(right_), evaluation.count);
  evaluation.metrics = {{"accuracy", evaluation.score}};
  if (!labels_->empty()) report_labels(evaluation);
}

/// The scores of each label, and macro F1, the mean of their F1. Labels that neither the data nor
/// the predictions have do not count, as in scikit-learn.
void ChoiceMetrics::report_labels(Evaluation& evaluation) const {
  double sum = 0;
  Index occurring = 0;
  for (std::size_t i = 0; i < labels_->size(); ++i) {
    LabelScores scores{.label = (*labels_)[i], .predicted = counts_[i]};
    Index given = 0;
    for (std::size_t j = 0; j < labels_->size(); ++j)
      scores.count += counts_[i][j], given += counts_[j][i];
    const auto right = static_cast<double>(counts_[i][i]);
    scores.precision = ratio(right, given);
    scores.recall = ratio(right, scores.count);
    scores.f1 = ratio(2 * right, scores.count + given);
    sum += scores.f1;
    occurring += scores.count + given > 0;
    evaluation.labels.push_back(std::move(scores));
  }
  evaluation.metrics.emplace_back("macro_f1", ratio(sum, occurring));
}

SentenceTask::SentenceTask(const Config& config, Question question)
    : ExampleTask(config.model.max_length),
      question_(std::move(question)),
      crops_(config.task.format == DataFormat::coarsewsd) {
  const std::array<SentenceExamples, 3> splits = read_splits_of(config);
  const SentenceExamples& train = splits[0];
  std::vector<std::vector<std::string>> sentences;
  for (const SentenceExample& example : train) sentences.push_back(example.words);
  vocabulary_ = Vocabulary::build(sentences, config.task.min_count);
  if (question_.has_labels) {
    labels_ = distinct(train, [](const auto& e) { return e.label; });
    require<UserError>(labels_.size() >= 2, "{}: there is only the label {}; there must be two",
                       source_of(config), labels_[0]);
  }
  if (question_.about_a_word)
    targets_ =
        distinct(train, [](const auto& e) { return e.words[static_cast<std::size_t>(e.index)]; });
  std::array<Examples, 3> examples = {encoded(splits[0]), encoded(splits[1]), encoded(splits[2])};
  noise_ = noise_of(config.task, examples[0]);
  set_splits(std::move(examples));
}

SentenceTask::SentenceTask(const Config& config, const Vocabularies& vocabularies,
                           Question question)
    : ExampleTask(config.model.max_length),
      question_(std::move(question)),
      crops_(config.task.format == DataFormat::coarsewsd) {
  vocabulary_.emplace(token_list(vocabularies, "tokens"));
  if (question_.has_labels) labels_ = distinct_list(vocabularies, "labels");
  if (question_.about_a_word) targets_ = distinct_list(vocabularies, "targets");
}

Task::Vocabularies SentenceTask::vocabularies() const {
  Vocabularies lists = Task::vocabularies();
  if (question_.has_labels) lists["labels"] = labels_;
  if (question_.about_a_word) lists["targets"] = targets_;
  return lists;
}

std::array<SentenceExamples, 3> SentenceTask::read_splits_of(const Config& config) const {
  if (config.task.format == DataFormat::coarsewsd) {
    const CoarseWsd rows = read_coarsewsd(config.task.data, config.task.valid_share, config.seed);
    return {parsed(rows.train), parsed(rows.valid), parsed(rows.test)};
  }
  return read_splits(
      config, [&](const std::string& file) { return parsed(read_tsv(file, question_.columns)); });
}

SentenceExample SentenceTask::parsed(const TsvRow& row) const {
  const SentenceExample example = question_.parse(row);
  return crops_ && example.index >= 0 ? cropped(example, max_length()) : example;
}

SentenceExamples SentenceTask::parsed(const std::vector<TsvRow>& rows) const {
  SentenceExamples examples;
  for (const TsvRow& row : rows) examples.push_back(parsed(row));
  return examples;
}

/// The right choice; -1 when it is not given or unknown.
Index SentenceTask::answer_of(const SentenceExample& example) const {
  if (!question_.has_labels) return example.antecedent;
  const auto found = std::ranges::find(labels_, example.label);
  return found == labels_.end() ? -1 : found - labels_.begin();
}

EncodedSentence SentenceTask::encoded(const SentenceExample& example) const {
  require<UserError>(std::ssize(example.words) <= max_length(),
                     "{}: the sentence has {} words, more than model.max_length = {}",
                     example.place, example.words.size(), max_length());
  const Index answer = answer_of(example);
  if (answer < 0)
    throw UserError(fmt::format("{}: unknown label \"{}\"; the training data has: {}",
                                example.place, example.label, fmt::join(labels_, ", ")));
  return {vocabulary().ids(example.words), static_cast<std::int32_t>(example.index),
          static_cast<std::int32_t>(answer)};
}

SentenceTask::Examples SentenceTask::encoded(const SentenceExamples& examples) const {
  Examples result;
  for (const SentenceExample& example : examples) result.push_back(encoded(example));
  return result;
}

SentenceTask::Examples SentenceTask::read_examples(const std::filesystem::path& file) const {
  return encoded(parsed(read_tsv(file, question_.columns)));
}

SentenceTask::Batch SentenceTask::collated(const Examples& examples,
                                           std::span<const Index> chosen) {
  std::vector<std::vector<std::int32_t>> sentences;
  std::vector<std::int32_t> indices, answers;
  for (const Index i : chosen) {
    const EncodedSentence& example = examples.at(static_cast<std::size_t>(i));
    sentences.push_back(example.ids);
    indices.push_back(example.index);
    answers.push_back(example.answer);
  }
  const TokenBatch padded = pad(sentences);
  const Shape shape{std::ssize(chosen)};
  return {padded.ids, padded.lengths, Indices(indices, shape), Indices(answers, shape)};
}

BatchLoss SentenceTask::batch_loss(const Network& network, const Examples& examples,
                                   std::span<const Index> chosen, Context& context,
                                   ChoiceMetrics* metrics) const {
  Batch batch = collated(examples, chosen);
  if (context.training() && !noise_.unknown.empty())
    batch.ids = with_word_dropout(batch, context.next_random());
  const Tensor scores = logits(network, batch, context);
  if (metrics) metrics->update(scores, batch.answers);
  const CrossEntropyOptions loss = context.training() ? noise_.loss : CrossEntropyOptions();
  return {cross_entropy(scores, batch.answers, loss), std::ssize(chosen)};
}

SentenceTask::Noise SentenceTask::noise_of(const TaskOptions& options,
                                           const Examples& train) const {
  Noise noise;
  noise.loss.label_smoothing = options.label_smoothing;
  if (options.class_weights == ClassWeights::balanced) {
    std::vector<double> counts(labels_.size()), weights;
    for (const EncodedSentence& example : train) ++counts[static_cast<std::size_t>(example.answer)];
    for (const double count : counts) weights.push_back(1 / std::sqrt(count));
    noise.loss.class_weights = Tensor::from(weights, {std::ssize(labels_)});
  }
  if (options.word_dropout > 0) {
    std::vector<double> counts(static_cast<std::size_t>(vocabulary().size()));
    for (const EncodedSentence& example : train)
      for (const std::int32_t id : example.ids) ++counts[static_cast<std::size_t>(id)];
    for (const double count : counts)
      noise.unknown.push_back(options.word_dropout / (options.word_dropout + count));
    noise.unknown[Vocabulary::padding] = 0;
  }
  return noise;
}

Indices SentenceTask::with_word_dropout(const Batch& batch, const Random& random) const {
  std::vector<std::int32_t> ids(batch.ids.data().begin(), batch.ids.data().end());
  const std::size_t time = static_cast<std::size_t>(batch.ids.dim(1));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool asked = batch.indices.data()[i / time] == static_cast<std::int32_t>(i % time);
    const double probability = noise_.unknown[static_cast<std::size_t>(ids[i])];
    if (!asked && random.uniform(i) < probability) ids[i] = Vocabulary::unknown;
  }
  return Indices(ids, batch.ids.shape());
}

void SentenceTask::initialise(Network& network, const ModelOptions& options) const {
  if (options.init == InitKind::naive_bayes)
    start_as_naive_bayes(network, options, examples(Split::train), outputs());
}

Index SentenceTask::tokens(Index example) const {
  return std::ssize(examples(Split::train).at(static_cast<std::size_t>(example)).ids);
}

Sentence SentenceTask::read(std::string_view text) const {
  Sentence sentence = Task::read(text);
  for (Index i = 0; i < std::ssize(sentence.words); ++i)
    if (std::ranges::find(targets_, sentence.words[static_cast<std::size_t>(i)]) != targets_.end())
      sentence.targets.push_back(i);
  return sentence;
}

LabelledText SentenceTask::read_line(const TsvRow& row) const {
  const SentenceExample example = parsed(row);
  const std::string text =
      crops_ ? fmt::format("{}", fmt::join(example.words, " ")) : row.fields.back();
  LabelledText line{.label = question_.has_labels ? example.label : "",
                    .text = text,
                    .sentence = read(text),
                    .index = example.index,
                    .answer = answer_of(example),
                    .antecedent = example.antecedent};
  if (line.index < 0 && !line.sentence.targets.empty()) line.index = line.sentence.targets.front();
  return line;
}

Scores SentenceTask::scores(const Network& network, const Sentence& sentence, Index index,
                            Context& context) const {
  const Examples one = {{sentence.ids, static_cast<std::int32_t>(index), 0}};
  const Index first[] = {0};
  return {reshape(logits(network, collated(one, first), context), {-1}),
          question_.has_labels ? labels_ : sentence.words, question_.formula};
}

std::vector<Prediction> SentenceTask::predict(const Network& network, std::string_view text) const {
  const Sentence sentence = read(text);
  require<UserError>(!question_.about_a_word || !sentence.targets.empty(),
                     "\"{}\" has none of the words that the model was trained on: {}", text,
                     fmt::format("{}", fmt::join(targets_, ", ")));
  return answers(network, text, sentence);
}

}  // namespace qkv
