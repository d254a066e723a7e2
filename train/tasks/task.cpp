#include "train/tasks/task.h"

#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "train/config/task_kinds.h"
#include "train/tasks/kinds.h"
#include "train/tasks/sentence_task.h"

namespace qkv {
namespace {

using Batch = SentenceTask::Batch;

Tensor sense_logits(const Network& network, const Batch& batch, Context& context) {
  return network.logits(
      select_rows((*network.model)(batch.ids, batch.lengths, context), batch.indices));
}

Tensor class_logits(const Network& network, const Batch& batch, Context& context) {
  const Model& model = *network.model;
  return network.logits(model.sentence(model(batch.ids, batch.lengths, context), batch.lengths));
}

/// -inf at padding and at the pronoun itself, which cannot be the answer, else 0: [B, T].
Tensor excluded(const Indices& lengths, const Indices& pronouns, Index time, DType dtype) {
  std::vector<double> values;
  for (std::size_t b = 0; b < lengths.data().size(); ++b)
    for (Index t = 0; t < time; ++t) {
      const bool possible = t < lengths.data()[b] && t != pronouns.data()[b];
      values.push_back(possible ? 0 : -std::numeric_limits<double>::infinity());
    }
  return Tensor::from(values, {lengths.size(), time}, dtype);
}

Tensor antecedent_logits(const Network& network, const Batch& batch, Context& context) {
  const Tensor x = (*network.model)(batch.ids, batch.lengths, context);
  const Index sentences = x.dim(0), time = x.dim(1), width = x.dim(2);
  require<UserError>(time > 1, no_other_word);
  const Tensor query =
      reshape(network.logits(select_rows(x, batch.indices)), {sentences, width, 1});
  const Tensor scores = reshape(matmul(x, query), {sentences, time});
  return scores / std::sqrt(static_cast<double>(width)) +
         excluded(batch.lengths, batch.indices, time, x.dtype());
}

/// Which sense does a word have in its sentence? The word's contextual vector goes through the
/// output layer.
constexpr SentenceTask::Question word_sense_question = {.columns = word_sense_columns,
                                                        .parse = parse_labelled,
                                                        .has_labels = true,
                                                        .about_a_word = true,
                                                        .formula = "W y_i + b",
                                                        .logits = sense_logits};

/// Which class does a text belong to? The text's vector (`Model::sentence`) goes through the output
/// layer.
constexpr SentenceTask::Question class_question = {.columns = classify_columns,
                                                   .parse = parse_labelled,
                                                   .has_labels = true,
                                                   .about_a_word = false,
                                                   .formula = "W mean(y) + b",
                                                   .logits = class_logits};

/// Which word does a pronoun refer to? The logit of word t is the product of its contextual vector
/// with the pronoun's after the output layer, x_t (W x_pronoun + b) / sqrt(D), as in a pointer
/// network (Vinyals et al. 2015), with a dot product instead of additive attention.
constexpr SentenceTask::Question antecedent_question = {.columns = coreference_columns,
                                                        .parse = parse_coreference,
                                                        .has_labels = false,
                                                        .about_a_word = true,
                                                        .formula = "y_j . (W y_i + b) / sqrt(D)",
                                                        .logits = antecedent_logits};

std::optional<Conflict> no_conflict(const Config&) {
  return std::nullopt;
}

constexpr TaskRow row(TaskKind kind, std::string_view name, std::string_view help,
                      decltype(TaskRow::make) make, TaskTraits traits = {},
                      decltype(TaskRow::conflict) conflict = no_conflict) {
  return {kind, name, help, make, traits, conflict};
}

constexpr auto rows = std::to_array<TaskRow>({
    row(TaskKind::word_sense, "word-sense", "sense of a word in its sentence",
        made<SentenceTask, word_sense_question>,
        {.has_labels = true, .has_one_label = true, .answers_about_words = true}),
    row(TaskKind::static_embedding, "static-embedding", "word vectors from text",
        make_static_embedding, {}, static_embedding_conflict),
    row(TaskKind::classify, "classify", "class of a text", made<SentenceTask, class_question>,
        {.has_labels = true, .has_one_label = true}),
    row(TaskKind::coreference, "coreference", "word that a pronoun refers to",
        made<SentenceTask, antecedent_question>, {.answers_about_words = true}),
    row(TaskKind::translate, "translate", "translation of a sentence", make_translation,
        {.predicts_words = true, .has_source_and_target = true}, translation_conflict),
    row(TaskKind::language_model, "language-model", "next token", make_language_model,
        {.predicts_words = true, .cutting = {TokenizerKind::character, false}},
        language_model_conflict),
    row(TaskKind::tagging, "tagging", "label of each word", make_tagging,
        {.has_labels = true, .answers_about_words = true}, tagging_conflict),
    row(TaskKind::masked_language_model, "masked-language-model",
        "tokens that are masked, from both sides", make_masked_language_model,
        {.predicts_words = true, .answers_about_words = true}),
});
static_assert(lists_every_kind(rows));

}  // namespace

std::span<const TaskRow> task_kinds() {
  return rows;
}

std::unique_ptr<Task> make_task(const Config& config, const Task::Vocabularies& known,
                                ReadCallback& callback) {
  require<UserError>(!source_of(config.task).empty(),
                     "the model was imported without data; name a file with --data where the "
                     "command has it, or train another run from it (train.init)");
  return row_of(rows, config.task.kind).make(config, known, &callback);
}

std::unique_ptr<Task> make_task(const Config& config, ReadCallback& callback) {
  return make_task(config, {}, callback);
}

std::unique_ptr<Task> make_task(const Config& config) {
  ReadCallback silent;
  return make_task(config, silent);
}

bool have_equal_tasks(const Config& a, const Config& b) {
  const auto options = [](const Config& config) {
    return std::tie(config.seed, config.task, config.model.max_length, config.model.width,
                    config.train.init);
  };
  return options(a) == options(b);
}

std::unique_ptr<Task> restore_task(const Config& config, const Task::Vocabularies& vocabularies) {
  return row_of(rows, config.task.kind).make(config, vocabularies, nullptr);
}

}  // namespace qkv
