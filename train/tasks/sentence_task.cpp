#include "train/tasks/sentence_task.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "datasets/batch.h"
#include "datasets/coarsewsd.h"
#include "train/config/task_kinds.h"
#include "train/tasks/data_report.h"
#include "train/tasks/labels.h"

namespace qkv {
namespace {

/// task.word where it has an effect.
std::string asked_word(const Config& config) {
  const bool is_asked = config.task.kind == TaskKind::word_sense &&
                        cutting_of(config).kind != TokenizerKind::character;
  return is_asked ? config.task.word : "";
}

double ratio(double a, Index b) {
  return b ? a / static_cast<double>(b) : 0.0;
}

}  // namespace

/// The corpus has the sentence of row i as its text i.
struct SentenceTask::Rows {
  struct Row {
    std::int32_t label, index, antecedent;  ///< positions count pieces; -1: none
  };

  Corpus corpus;
  Numbering labels;
  Places places;
  std::vector<Row> rows;
};

/// A row for the model.
struct SentenceTask::Encoded {
  std::vector<std::int32_t> ids;
  Index length;         ///< of the whole sentence
  Index begin;          ///< how many tokens are left out before the ids
  Index index, answer;  ///< -1: none
};

void for_each_ids(const EncodedSentences& examples, const Task::IdsSink& sink) {
  for (Index i = 0; i < examples.size(); ++i) {
    const auto [index, answer] = examples.questions[static_cast<std::size_t>(i)];
    const std::int32_t rest[] = {index, answer, -1};  // -1 ends an example
    sink(examples.sentences[i]);
    sink(rest);
  }
}

void ChoiceMetrics::update(const Tensor& scores, const Indices& answers) {
  const auto values = scores.data<float>();
  const auto choices = static_cast<std::size_t>(scores.dim(1));
  for (std::size_t i = 0; i < answers.data().size(); ++i) {
    const auto row = values.subspan(i * choices, choices);
    const auto predicted = static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin());
    const auto answer = answers.data()[i];
    right_ += predicted == answer;
    if (!labels_->empty()) ++counts_[{answer, predicted}];
  }
  if (labels_->empty() || !keeps_probabilities_) return;
  const auto probabilities = softmax(scores).values();
  probabilities_.insert(probabilities_.end(), probabilities.begin(), probabilities.end());
  answers_.insert(answers_.end(), answers.data().begin(), answers.data().end());
}

void ChoiceMetrics::report(Evaluation& evaluation) const {
  evaluation.score = ratio(static_cast<double>(right_), evaluation.count);
  evaluation.metrics = {{"accuracy", evaluation.score}};
  if (!labels_->empty()) report_labels(evaluation);
}

/// The scores of each label, and macro F1, the mean of their F1. Labels that neither the data nor
/// the predictions have do not count, as in scikit-learn.
void ChoiceMetrics::report_labels(Evaluation& evaluation) const {
  const std::size_t labels = labels_->size();
  const bool are_compared = labels <= most_compared_labels;
  const LabelScores none{.label = "", .predicted = std::vector<Index>(are_compared ? labels : 0)};
  std::vector<LabelScores> table(labels, none);
  std::vector<Index> given(labels), right(labels);
  for (const auto& [pair, count] : counts_) {
    const auto answer = static_cast<std::size_t>(pair.first),
               predicted = static_cast<std::size_t>(pair.second);
    LabelScores& scores = table[answer];
    scores.count += count;
    given[predicted] += count;
    if (answer == predicted) right[answer] = count;
    if (are_compared) scores.predicted[predicted] = count;
  }
  double sum = 0;
  Index occurring = 0;
  for (std::size_t i = 0; i < labels; ++i) {
    LabelScores& scores = table[i];
    scores.label = (*labels_)[i];
    const auto hits = static_cast<double>(right[i]);
    scores.precision = ratio(hits, given[i]);
    scores.recall = ratio(hits, scores.count);
    scores.f1 = ratio(2 * hits, scores.count + given[i]);
    sum += scores.f1;
    occurring += scores.count + given[i] > 0;
  }
  evaluation.labels = std::move(table);
  evaluation.metrics.emplace_back("macro_f1", ratio(sum, occurring));
  evaluation.probabilities = probabilities_;
  evaluation.answers = answers_;
}

SentenceTask::SentenceTask(const Config& config, Question question, const Vocabularies& known,
                           ReadCallback& callback)
    : ExampleTask(config),
      question_(std::move(question)),
      word_(asked_word(config)),
      unknown_labels_(config.task.unknown_labels) {
  Rows rows;
  SplitRows splits = read_splits_of(config, rows, callback);
  if (config.task.folds > 0) hold_out_fold(config, rows, splits);
  learn_tokens(rows.corpus.counts(splits[0]), known);
  if (question_.has_labels) {
    std::set<std::string> labels;
    for (const Index row : splits[0])
      labels.insert(rows.labels.text(rows.rows[static_cast<std::size_t>(row)].label));
    labels_ = label_list(labels, source_of(config));
  }
  if (question_.about_a_word) targets_ = target_words(rows, splits[0]);
  std::array<Examples, 3> examples = {encoded(rows, splits[0], callback),
                                      encoded(rows, splits[1], callback),
                                      encoded(rows, splits[2], callback)};
  noise_ = noise_of(config.task, examples[0]);
  set_splits(std::move(examples));
}

SentenceTask::SentenceTask(const Config& config, const Vocabularies& vocabularies,
                           Question question)
    : ExampleTask(config),
      question_(std::move(question)),
      word_(asked_word(config)),
      unknown_labels_(config.task.unknown_labels) {
  restore_tokens(vocabularies);
  if (question_.has_labels) labels_ = distinct_list(vocabularies, "labels");
  if (question_.about_a_word) targets_ = distinct_list(vocabularies, "targets");
}

Task::Vocabularies SentenceTask::vocabularies() const {
  Vocabularies lists = Task::vocabularies();
  if (question_.has_labels) lists["labels"] = labels_;
  if (question_.about_a_word) lists["targets"] = targets_;
  return lists;
}

SplitRows SentenceTask::read_splits_of(const Config& config, Rows& rows,
                                       ReadCallback& callback) const {
  if (config.task.format == DataFormat::coarsewsd) {
    const CoarseWsd read = read_coarsewsd(config.task.data, config.task.valid_share, config.seed);
    SplitRows splits;
    for (const auto& [part, split] :
         {std::pair(&read.train, 0), std::pair(&read.valid, 1), std::pair(&read.test, 2)})
      for (const TsvRow& row : *part) {
        splits[static_cast<std::size_t>(split)].push_back(std::ssize(rows.rows));
        add_row(row, rows);
      }
    return splits;
  }
  SplitRows splits = read_splits(config, [&](const std::string& file) {
    add_file(file, rows, callback);
    return std::ssize(rows.rows);
  });
  if (question_.has_labels && !config.task.data.empty())
    keep_labels_in_training(rows, config.task, splits);
  return splits;
}

/// The training examples of each label, in an order drawn by the seed, are dealt to the folds in
/// turn; those of `task.fold` take the place of the test examples, the others train, as the only
/// example of a label always does. Throws UserError where a fold would be empty.
void SentenceTask::hold_out_fold(const Config& config, const Rows& rows, SplitRows& splits) {
  const auto [folds, fold] = std::pair(config.task.folds, config.task.fold);
  const Index count = std::ssize(splits[0]);
  require<UserError>(folds <= count,
                     "{}: task.folds = {} needs as many training examples; there are {}",
                     source_of(config), folds, count);
  std::map<std::int32_t, std::vector<Index>> of_label;
  for (const Index i : Random(config.seed, Purpose::shuffling).permutation(count)) {
    const Index row = splits[0][static_cast<std::size_t>(i)];
    of_label[rows.rows[static_cast<std::size_t>(row)].label].push_back(row);
  }
  splits[0].clear();
  splits[2].clear();
  Index dealt = 0;
  for (const auto& [label, examples] : of_label)
    for (const Index row : examples) {
      const bool held_out = examples.size() > 1 && dealt++ % folds == fold - 1;
      splits[held_out ? 2 : 0].push_back(row);
    }
  for (auto* split : {&splits[0], &splits[2]}) std::ranges::sort(*split);
}

/// Moves the examples whose label no training example has from the splits that were drawn to the
/// training split, as those of a label that occurs once.
void SentenceTask::keep_labels_in_training(const Rows& rows, const TaskOptions& task,
                                           SplitRows& splits) {
  const bool is_drawn[] = {false, task.valid.empty(), task.test.empty()};
  const auto label = [&](Index row) { return rows.rows[static_cast<std::size_t>(row)].label; };
  std::set<std::int32_t> known;
  for (const Index row : splits[0]) known.insert(label(row));
  for (std::size_t split = 1; split < splits.size(); ++split)
    std::erase_if(splits[split], [&](Index row) {
      if (!is_drawn[split] || known.contains(label(row))) return false;
      splits[0].push_back(row);
      return true;
    });
}

void SentenceTask::add_row(const TsvRow& row, Rows& rows) const {
  SentenceExample example = question_.parse(row, cutting());
  if (example.index < 0 && !word_.empty()) example.index = place_of_word(example.pieces);
  rows.corpus.add(example.pieces);
  rows.places.add(row.place);
  rows.rows.push_back({rows.labels.number(example.label), static_cast<std::int32_t>(example.index),
                       static_cast<std::int32_t>(example.antecedent)});
}

void SentenceTask::add_file(const std::filesystem::path& file, Rows& rows,
                            ReadCallback& callback) const {
  for_each_row(file, Columns(form(), columns()), callback, [&](const TsvRow& row) {
    add_row(row, rows);
    row.demand(word_.empty() || rows.rows.back().index >= 0,
               "the sentence has no word \"{}\" (task.word)", word_);
  });
}

/// The first piece of the first occurrence of task.word; -1: there is none.
Index SentenceTask::place_of_word(const std::vector<std::string>& pieces) const {
  const auto without_space = [](std::string_view piece) {
    return piece.starts_with(' ') ? piece.substr(1) : piece;
  };
  const auto wanted = cut_phrase(word_, cutting()).pieces;
  const auto found = std::search(pieces.begin(), pieces.end(), wanted.begin(), wanted.end(),
                                 [&](const std::string& a, const std::string& b) {
                                   return without_space(a) == without_space(b);
                                 });
  return wanted.empty() || found == pieces.end() ? -1 : found - pieces.begin();
}

/// The first token of each word that is asked about.
std::vector<std::string> SentenceTask::target_words(const Rows& rows,
                                                    std::span<const Index> chosen) const {
  std::set<std::int32_t> pieces;
  for (const Index row : chosen)
    pieces.insert(
        rows.corpus[row][static_cast<std::size_t>(rows.rows[static_cast<std::size_t>(row)].index)]);
  std::set<std::string> words;
  for (const std::int32_t piece : pieces)
    words.insert(tokenizer().tokens_of(rows.corpus.pieces().text(piece)).front());
  return {words.begin(), words.end()};
}

SentenceTask::Encoded SentenceTask::encoded(const Rows& rows, const CorpusEncoder& encoder,
                                            Index row, std::span<const Index> known) const {
  const auto [label, index, antecedent] = rows.rows[static_cast<std::size_t>(row)];
  Encoded example{encoder.ids(row), 0, 0, -1, -1};
  example.length = std::ssize(example.ids);
  if (index >= 0) example.index = encoder.position(row, index);
  if (truncates() && example.length > max_length()) {
    example.begin = crop_begin(example.length, example.index);
    crop(example.ids, example.begin);
    if (index >= 0) example.index -= example.begin;
  }
  if (question_.has_labels)
    example.answer = known[static_cast<std::size_t>(label)];
  else if (antecedent >= 0)
    example.answer = encoder.position(row, antecedent) - example.begin;
  const Index ends = tokenizer().special_tokens();
  const bool is_left_out =
      !question_.has_labels &&
      (example.answer < ends || example.answer >= std::ssize(example.ids) - ends);
  if (is_left_out || example.answer < 0) example.answer = -1;
  return example;
}

SentenceTask::Examples SentenceTask::encoded(const Rows& rows, std::span<const Index> chosen,
                                             ReadCallback& callback) const {
  const CorpusEncoder encoder(rows.corpus, tokenizer());
  const std::vector<Index> known = label_ids(labels_, rows.labels);
  DataReport report(rows.places, chosen, max_length());
  Examples examples;
  for (const Index row : chosen) {
    const Encoded example = encoded(rows, encoder, row, known);
    report.is_cut(row, example.length, truncates());
    if (example.answer >= 0) {
      examples.sentences.add(example.ids);
      examples.questions.push_back(
          {static_cast<std::int32_t>(example.index), static_cast<std::int32_t>(example.answer)});
    } else if (question_.has_labels) {
      const auto label = rows.rows[static_cast<std::size_t>(row)].label;
      report.leave_out_label(row, rows.labels.text(label), unknown_labels_, labels_);
    } else {
      report.leave_out("an antecedent beyond model.max_length");
    }
  }
  report.tell(callback);
  return examples;
}

SentenceTask::Examples SentenceTask::read_examples(const std::filesystem::path& file,
                                                   ReadCallback& callback) const {
  Rows rows;
  add_file(file, rows, callback);
  return encoded(rows, index_range(0, rows.corpus.size()), callback);
}

LabelledText SentenceTask::example_of(const Examples& examples, Index i) const {
  const auto [index, answer] = examples.questions[static_cast<std::size_t>(i)];
  LabelledText text = text_of_ids(examples.sentences[i]);
  text.answer = answer;
  if (question_.has_labels)
    text.label = labels_[static_cast<std::size_t>(answer)];
  else
    text.antecedent = answer;
  if (!question_.about_a_word) return text;
  text.index = index;
  text.sentence.targets = {index};
  return text;
}

SentenceTask::Batch SentenceTask::collated(const Examples& examples,
                                           std::span<const Index> chosen) {
  std::vector<std::vector<std::int32_t>> sentences;
  std::vector<std::int32_t> indices, answers;
  for (const Index i : chosen) {
    const auto [index, answer] = examples.questions[static_cast<std::size_t>(i)];
    sentences.push_back(examples.sentences[i]);
    indices.push_back(index);
    answers.push_back(answer);
  }
  const TokenBatch padded = pad(sentences);
  const Shape shape{std::ssize(chosen)};
  return {padded.ids, padded.lengths, Indices(indices, shape), Indices(answers, shape)};
}

BatchLoss SentenceTask::batch_loss(const Network& network, const Examples& examples,
                                   std::span<const Index> chosen, Context& context,
                                   ChoiceMetrics* metrics) const {
  Batch batch = collated(examples, chosen);
  if (context.training() && !noise_.unlisted.empty())
    batch.ids = with_word_dropout(batch, context.next_random());
  const Tensor scores = logits(network, batch, context);
  if (metrics) metrics->update(scores, batch.answers);
  const CrossEntropyOptions options = context.training() ? noise_.loss : CrossEntropyOptions();
  BatchLoss loss{cross_entropy(scores, batch.answers, options), std::ssize(chosen)};
  if (options.class_weights) {
    const auto weights = options.class_weights.values();
    loss.weight = 0;
    for (const auto answer : batch.answers.data())
      loss.weight += weights[static_cast<std::size_t>(answer)];
  }
  return loss;
}

SentenceTask::Noise SentenceTask::noise_of(const TaskOptions& options,
                                           const Examples& train) const {
  Noise noise;
  noise.loss.label_smoothing = options.label_smoothing;
  if (options.class_weights == ClassWeights::balanced) {
    std::vector<double> counts(labels_.size()), weights;
    for (const auto& question : train.questions)
      ++counts[static_cast<std::size_t>(question.answer)];
    for (const double count : counts) weights.push_back(1 / std::max(count, 1.0));
    noise.loss.class_weights = Tensor::from(weights, {std::ssize(labels_)});
  }
  if (options.word_dropout > 0) {
    std::vector<double> counts(static_cast<std::size_t>(vocabulary().size()));
    for (Index i = 0; i < train.size(); ++i)
      for (const std::int32_t id : train.sentences[i]) ++counts[static_cast<std::size_t>(id)];
    for (std::size_t id = 0; id < counts.size(); ++id) {
      const bool is_word =
          id != Vocabulary::padding && tokenizer().is_text(static_cast<std::int32_t>(id));
      noise.unlisted.push_back(is_word ? options.word_dropout / (options.word_dropout + counts[id])
                                       : 0);
    }
  }
  return noise;
}

Indices SentenceTask::with_word_dropout(const Batch& batch, const Random& random) const {
  std::vector<std::int32_t> ids(batch.ids.data().begin(), batch.ids.data().end());
  const std::size_t time = static_cast<std::size_t>(batch.ids.dim(1));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool asked = batch.indices.data()[i / time] == static_cast<std::int32_t>(i % time);
    const double probability = noise_.unlisted[static_cast<std::size_t>(ids[i])];
    if (!asked && random.uniform(i) < probability)
      ids[i] = Vocabulary::unknown;
  }
  return Indices(ids, batch.ids.shape());
}

std::string SentenceTask::label_summary() const {
  if (labels_.empty()) return "";
  std::vector<Index> counts(labels_.size());
  for (const auto& question : examples(Split::train).questions)
    ++counts[static_cast<std::size_t>(question.answer)];
  return summary_of(labels_, counts);
}

Index SentenceTask::tokens(Index example) const {
  return examples(Split::train).sentences.length(example);
}

void SentenceTask::add_targets(Sentence& sentence) const {
  for (Index i = 0; i < std::ssize(sentence.words); ++i)
    if (std::ranges::find(targets_, sentence.words[static_cast<std::size_t>(i)]) != targets_.end())
      sentence.targets.push_back(i);
}

Sentence SentenceTask::read(std::string_view text) const {
  Sentence sentence = Task::read(text);
  add_targets(sentence);
  return sentence;
}

LabelledText SentenceTask::read_line(const TsvRow& row) const {
  Rows rows;
  add_row(row, rows);
  const Index known[] = {label_id(labels_, rows.labels.text(0))};
  const Encoded example = encoded(rows, CorpusEncoder(rows.corpus, tokenizer()), 0, known);
  LabelledText line{.label = question_.has_labels ? rows.labels.text(0) : "",
                    .text = row.fields.back(),
                    .index = example.index,
                    .answer = example.answer,
                    .antecedent = question_.has_labels ? -1 : example.answer};
  if (example.length > std::ssize(example.ids)) {
    line.sentence = {sentence_of(rows.corpus.pieces_of(0)).words, example.ids, {}};
    crop(line.sentence.words, example.begin);
    line.text = tokenizer().joined(line.sentence.words);
    add_targets(line.sentence);
  } else {
    line.sentence = read(line.text);
  }
  if (line.index < 0 && !line.sentence.targets.empty()) line.index = line.sentence.targets.front();
  return line;
}

Scores SentenceTask::scores(const Network& network, const Sentence& sentence, Index index,
                            Context& context) const {
  Examples one;
  one.sentences.add(sentence.ids);
  one.questions.push_back({static_cast<std::int32_t>(index), 0});
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
