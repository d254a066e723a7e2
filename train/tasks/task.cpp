#include "train/tasks/task.h"

#include <array>

#include "train/config/task_kinds.h"
#include "train/tasks/language_model.h"
#include "train/tasks/masked_language_model.h"
#include "train/tasks/sentence_task.h"
#include "train/tasks/static_embedding.h"
#include "train/tasks/tagging.h"
#include "train/tasks/translation.h"

namespace qkv {
namespace {

std::optional<Conflict> no_conflict(const Config&) {
  return std::nullopt;
}

/// A task of `T`; `Given` are what its constructor takes besides the config.
template <class T, const auto&... Given>
constexpr TaskRow row(TaskKind kind, std::string_view name, std::string_view help,
                      TaskTraits traits = {},
                      std::optional<Conflict> (*conflict)(const Config&) = no_conflict) {
  return {kind,
          name,
          help,
          [](const Config& config, const Task::Vocabularies& known,
             ReadCallback* callback) -> std::unique_ptr<Task> {
            auto task = std::make_unique<T>(config, Given...);
            callback ? task->learn(config, known, *callback) : task->restore(known);
            return task;
          },
          traits,
          conflict};
}

constexpr auto rows = std::to_array<TaskRow>({
    row<SentenceTask, word_sense_question>(TaskKind::word_sense, "word-sense",
                                           "sense of a word in its sentence",
                                           {.has_labels = true, .has_one_label = true}),
    row<StaticEmbedding>(TaskKind::static_embedding, "static-embedding", "word vectors from text",
                         {}, StaticEmbedding::conflict),
    row<SentenceTask, class_question>(TaskKind::classify, "classify", "class of a text",
                                      {.has_labels = true, .has_one_label = true}),
    row<SentenceTask, antecedent_question>(TaskKind::coreference, "coreference",
                                           "word that a pronoun refers to"),
    row<Translation>(TaskKind::translate, "translate", "translation of a sentence",
                     {.predicts_words = true, .has_source_and_target = true},
                     Translation::conflict),
    row<LanguageModel>(TaskKind::language_model, "language-model", "next token",
                       {.predicts_words = true, .cutting = {TokenizerKind::character, false}},
                       LanguageModel::conflict),
    row<Tagging>(TaskKind::tagging, "tagging", "label of each word", {.has_labels = true},
                 Tagging::conflict),
    row<MaskedLanguageModel>(TaskKind::masked_language_model, "masked-language-model",
                             "tokens that are masked, from both sides", {.predicts_words = true}),
});
static_assert(lists_every_kind(rows));

}  // namespace

std::span<const TaskRow> task_kinds() {
  return rows;
}

std::unique_ptr<Task> make_task(const Config& config, const Task::Vocabularies& known,
                                ReadCallback& callback) {
  require<UserError>(!source_of(config).empty(),
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
