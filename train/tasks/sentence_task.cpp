#include "train/tasks/sentence_task.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "datasets/batch.h"
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

}  // namespace

/// A row for the model.
struct SentenceTask::Encoded {
  std::vector<std::int32_t> ids;
  Index length;         ///< of the whole sentence
  Index begin;          ///< how many tokens are left out before the ids
  Index index, answer;  ///< -1: none
};

SentenceTask::SentenceTask(const Config& config, const Question& question)
    : RowTask(config), question_(question), width_(config.model.width), word_(asked_word(config)) {}

/// Coreference maps vectors to vectors.
Index SentenceTask::outputs() const {
  return question_.has_labels ? RowTask::outputs() : width_;
}

void SentenceTask::learn_lists(const Rows& rows, std::span<const Index> training,
                               const Vocabularies& known) {
  learn_tokens(rows.corpus.counts(training), known);
  std::set<std::string> labels, targets;
  for (const Index row : training) {
    const auto [label, piece] = rows.marks[row].front();
    labels.insert(rows.labels.text(label));
    if (!question_.about_a_word) continue;
    const auto pieces = rows.corpus[row];
    const std::string& asked = rows.corpus.pieces().text(pieces[static_cast<std::size_t>(piece)]);
    targets.insert(tokenizer().tokens_of(asked).front());
  }
  if (question_.has_labels) set_list("labels", label_list(labels, source_of(options())));
  if (question_.about_a_word) set_list("targets", {targets.begin(), targets.end()});
}

void SentenceTask::restore_lists(const Vocabularies& lists) {
  if (question_.has_labels) set_list("labels", distinct_list(lists, "labels"));
  if (question_.about_a_word) set_list("targets", distinct_list(lists, "targets"));
}

void SentenceTask::add_row(const TsvRow& row, Rows& rows) const {
  SentenceExample example = question_.parse(row, cutting());
  if (example.index < 0 && !word_.empty()) example.index = place_of_word(example.pieces);
  const Rows::Mark marks[] = {
      {rows.labels.number(example.label), static_cast<std::int32_t>(example.index)},
      {-1, static_cast<std::int32_t>(example.antecedent)}};
  rows.add(row.place, example.pieces, marks);
}

void SentenceTask::add_file(const std::filesystem::path& file, Rows& rows,
                            ReadCallback& callback) const {
  for_each_row(file, Columns(form(), options().columns), callback, [&](const TsvRow& row) {
    add_row(row, rows);
    row.demand(word_.empty() || rows.marks[rows.size() - 1].front().piece >= 0,
               "the sentence has no word \"{}\" (task.word)", word_);
  });
}

/// The first piece of the first occurrence of task.word; -1: there is none.
Index SentenceTask::place_of_word(const std::vector<std::string>& pieces) const {
  const Index place = find_phrase(pieces, cut_phrase(word_, cutting()).pieces);
  return place == std::ssize(pieces) ? -1 : place;
}

SentenceTask::Encoded SentenceTask::encoded(const Rows& rows, const CorpusEncoder& encoder,
                                            Index row, std::span<const Index> known) const {
  const auto [label, index] = rows.marks[row][0];
  const Index antecedent = rows.marks[row][1].piece;
  Encoded example{encoder.ids(row), 0, 0, -1, -1};
  example.length = std::ssize(example.ids);
  if (index >= 0) example.index = encoder.position(row, index);
  if (options().truncate && example.length > max_length()) {
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
  const std::vector<Index> known = label_ids(labels(), rows.labels);
  DataReport report(rows, chosen, max_length());
  Examples examples;
  for (const Index row : chosen) {
    const Encoded example = encoded(rows, encoder, row, known);
    report.is_cut(row, example.length, options().truncate);
    if (example.answer >= 0) {
      examples.sentences.add(example.ids);
      examples.questions.push_back(
          {static_cast<std::int32_t>(example.index), static_cast<std::int32_t>(example.answer)});
    } else if (question_.has_labels) {
      const auto label = rows.marks[row][0].label;
      report.leave_out_label(row, rows.labels.text(label), options().unknown_labels, labels());
    } else {
      report.leave_out("an antecedent beyond model.max_length");
    }
  }
  report.tell(callback);
  return examples;
}

LabelledText SentenceTask::example_of(const Examples& examples, Index i) const {
  const auto [index, answer] = examples.questions[static_cast<std::size_t>(i)];
  LabelledText text = text_of_ids(examples.sentences[i]);
  text.answer = answer;
  if (question_.has_labels)
    text.label = labels()[static_cast<std::size_t>(answer)];
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
  const Tensor scores = question_.logits(network, batch, context);
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

/// Computes the weights of labels and the probabilities of word dropout.
void SentenceTask::check_training() {
  const TaskOptions& options = this->options();
  const Examples& train = examples(Split::train);
  noise_.loss.label_smoothing = options.label_smoothing;
  if (options.class_weights == ClassWeights::balanced) {
    std::vector<double> counts(labels().size()), weights;
    for (const auto& question : train.questions)
      ++counts[static_cast<std::size_t>(question.answer)];
    for (const double count : counts) weights.push_back(1 / std::max(count, 1.0));
    noise_.loss.class_weights = Tensor::from(weights, {std::ssize(labels())});
  }
  if (options.word_dropout > 0) {
    std::vector<double> counts(static_cast<std::size_t>(vocabulary().size()));
    for (Index i = 0; i < train.size(); ++i)
      for (const std::int32_t id : train.sentences[i]) ++counts[static_cast<std::size_t>(id)];
    for (std::size_t id = 0; id < counts.size(); ++id) {
      const bool is_word =
          id != Vocabulary::padding && tokenizer().is_text(static_cast<std::int32_t>(id));
      noise_.unlisted.push_back(is_word ? options.word_dropout / (options.word_dropout + counts[id])
                                        : 0);
    }
  }
}

Indices SentenceTask::with_word_dropout(const Batch& batch, const Random& random) const {
  std::vector<std::int32_t> ids(batch.ids.data().begin(), batch.ids.data().end());
  const std::size_t time = static_cast<std::size_t>(batch.ids.dim(1));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool asked = batch.indices.data()[i / time] == static_cast<std::int32_t>(i % time);
    const double probability = noise_.unlisted[static_cast<std::size_t>(ids[i])];
    if (!asked && random.uniform(i) < probability) ids[i] = Vocabulary::unknown;
  }
  return Indices(ids, batch.ids.shape());
}

std::string SentenceTask::label_summary() const {
  if (labels().empty()) return "";
  std::vector<Index> counts(labels().size());
  for (const auto& question : examples(Split::train).questions)
    ++counts[static_cast<std::size_t>(question.answer)];
  return summary_of(labels(), counts);
}

void SentenceTask::add_targets(Sentence& sentence) const {
  const Tokens& targets = list("targets");
  for (Index i = 0; i < std::ssize(sentence.words); ++i)
    if (std::ranges::find(targets, sentence.words[static_cast<std::size_t>(i)]) != targets.end())
      sentence.targets.push_back(i);
}

Sentence SentenceTask::read(std::string_view text) const {
  Sentence sentence = Reader::read(text);
  add_targets(sentence);
  return sentence;
}

LabelledText SentenceTask::read_line(const TsvRow& row) const {
  Rows rows;
  add_row(row, rows);
  const Index known[] = {label_id(labels(), rows.labels.text(0))};
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
  if (!has_choices(sentence)) return no_scores(network, sentence, context);
  Examples one;
  one.sentences.add(sentence.ids);
  one.questions.push_back({static_cast<std::int32_t>(index), 0});
  const Index first[] = {0};
  return {reshape(question_.logits(network, collated(one, first), context), {-1}),
          question_.has_labels ? labels() : sentence.words, std::string(question_.formula)};
}

/// One by one where the choices are words, in which sentences differ.
std::vector<Scores> SentenceTask::scores_of(const Network& network,
                                            std::span<const AnswerTarget> targets,
                                            Context& context) const {
  if (!question_.has_labels) {
    std::vector<Scores> of_words;
    for (const auto& [text, index] : targets)
      of_words.push_back(scores(network, text->sentence, index.value_or(0), context));
    return of_words;
  }
  Examples asked;
  for (const auto& [text, index] : targets) {
    asked.sentences.add(text->sentence.ids);
    asked.questions.push_back({static_cast<std::int32_t>(index.value_or(0)), 0});
  }
  const Batch batch = collated(asked, index_range(0, asked.size()));
  return scores_of_rows(question_.logits(network, batch, context), labels(), question_.formula);
}

/// No word is its own antecedent.
bool SentenceTask::has_choices(const Sentence& sentence) const {
  return question_.has_labels || sentence.ids.size() > 1;
}

std::string SentenceTask::refusal(const Sentence& sentence, std::string_view text) const {
  if (!has_choices(sentence)) return no_other_word;
  if (!question_.about_a_word || !sentence.targets.empty()) return "";
  return fmt::format("\"{}\" has none of the words that the model was trained on: {}", text,
                     fmt::join(list("targets"), ", "));
}

}  // namespace qkv
