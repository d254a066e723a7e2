#include "train/tasks/task.h"

#include <array>

#include "train/config/task_kinds.h"
#include "train/tasks/kinds.h"
#include "train/tasks/sentence_task.h"

namespace qkv {
namespace {

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
        made<SentenceTask, word_sense_question>, {.has_labels = true, .has_one_label = true}),
    row(TaskKind::static_embedding, "static-embedding", "word vectors from text",
        make_static_embedding, {}, static_embedding_conflict),
    row(TaskKind::classify, "classify", "class of a text", made<SentenceTask, class_question>,
        {.has_labels = true, .has_one_label = true}),
    row(TaskKind::coreference, "coreference", "word that a pronoun refers to",
        made<SentenceTask, antecedent_question>),
    row(TaskKind::translate, "translate", "translation of a sentence", make_translation,
        {.predicts_words = true, .has_source_and_target = true}, translation_conflict),
    row(TaskKind::language_model, "language-model", "next token", make_language_model,
        {.predicts_words = true, .cutting = {TokenizerKind::character, false}},
        language_model_conflict),
    row(TaskKind::tagging, "tagging", "label of each word", make_tagging, {.has_labels = true},
        tagging_conflict),
    row(TaskKind::masked_language_model, "masked-language-model",
        "tokens that are masked, from both sides", make_masked_language_model,
        {.predicts_words = true}),
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

std::unique_ptr<Task> restore_task(const Config& config, const Task::Vocabularies& vocabularies) {
  return row_of(rows, config.task.kind).make(config, vocabularies, nullptr);
}

}  // namespace qkv
