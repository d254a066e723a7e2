#include "train/tasks/task.h"

#include <algorithm>
#include <array>
#include <set>

#include "datasets/batch.h"
#include "datasets/text.h"
#include "train/config/task_kinds.h"
#include "train/tasks/classification.h"
#include "train/tasks/coreference.h"
#include "train/tasks/language_model.h"
#include "train/tasks/static_embedding.h"
#include "train/tasks/translation.h"
#include "train/tasks/word_sense.h"

namespace qkv {

std::string_view to_string(Split split) {
  return split == Split::train ? "train" : split == Split::valid ? "valid" : "test";
}

std::optional<double> Evaluation::find(std::string_view name) const {
  const auto found = std::ranges::find(metrics, name, [](const auto& m) { return m.first; });
  return found == metrics.end() ? std::nullopt : std::optional(found->second);
}

double Evaluation::metric(std::string_view name) const {
  const auto value = find(name);
  require<ValueError>(value.has_value(), "[evaluation] there is no metric {}", name);
  return *value;
}

std::string Evaluation::headline() const {
  return fmt::format("{} {:.4f}", metrics.front().first, metrics.front().second);
}

Sentence Task::read(std::string_view text) const {
  Sentence sentence{tokenized(text), {}, {}};
  require<UserError>(!sentence.words.empty(), "the sentence is empty; give at least one word");
  require<UserError>(
      std::ssize(sentence.words) <= max_length(),
      "the sentence has {} words, more than the model's longest, model.max_length = {}",
      sentence.words.size(), max_length());
  sentence.ids = vocabulary().ids(sentence.words);
  return sentence;
}

LabelledText Task::read_line(const TsvRow& row) const {
  row.require_labelled_text();
  LabelledText line{.text = row.fields.back(), .sentence = read(row.fields.back())};
  if (row.fields.size() == 3)
    line.index = row.position(1, row.sentence(2));
  else if (!line.sentence.targets.empty())
    line.index = line.sentence.targets.front();
  return line;
}

Scores Task::scores(const Network& network, const Sentence& sentence, Index,
                    Context& context) const {
  const std::vector<std::int32_t> ids[] = {sentence.ids};
  const TokenBatch batch = pad(ids);
  (*network.model)(batch.ids, batch.lengths, context);
  return {};
}

std::vector<Prediction> Task::predict(const Network& network, std::string_view text) const {
  return answers(network, text, read(text));
}

std::vector<Prediction> Task::answers(const Network& network, std::string_view text,
                                      const Sentence& sentence) const {
  const NoGrad no_grad;
  Context context;
  if (sentence.targets.empty())
    return {prediction_of(text, std::nullopt, scores(network, sentence, 0, context))};
  std::vector<Prediction> predictions;
  for (const Index target : sentence.targets)
    predictions.push_back(prediction_of(text, target, scores(network, sentence, target, context)));
  return predictions;
}

Prediction prediction_of(std::string_view text, std::optional<Index> index, const Scores& scores) {
  const auto probabilities = softmax(scores.logits).values();
  const auto best = std::ranges::max_element(probabilities);
  Prediction prediction{std::string(text), index,
                        scores.choices[static_cast<std::size_t>(best - probabilities.begin())],
                        *best};
  prediction.choices = scores.choices;
  prediction.logits = scores.logits.values();
  prediction.probabilities = probabilities;
  return prediction;
}

const std::vector<std::string>& token_list(const Task::Vocabularies& vocabularies,
                                           const std::string& name) {
  const auto found = vocabularies.find(name);
  require<FileError>(found != vocabularies.end() && !found->second.empty(),
                     "the checkpoint has no /vocabulary/{}", name);
  require<FileError>(std::ranges::find(found->second, "") == found->second.end(),
                     "the checkpoint's /vocabulary/{} has an empty text", name);
  return found->second;
}

const std::vector<std::string>& distinct_list(const Task::Vocabularies& vocabularies,
                                              const std::string& name) {
  const auto& list = token_list(vocabularies, name);
  std::set<std::string_view> known;
  for (const std::string& text : list)
    require<FileError>(known.insert(text).second,
                       "the checkpoint's /vocabulary/{} has \"{}\" twice", name, text);
  return list;
}

namespace {

std::optional<Conflict> no_conflict(const Config&) {
  return std::nullopt;
}

template <class T>
constexpr TaskRow row(TaskKind kind, std::string_view name, std::string_view help,
                      TaskTraits traits = {},
                      std::optional<Conflict> (*conflict)(const Config&) = no_conflict) {
  return {
      kind,
      name,
      help,
      [](const Config& config) -> std::unique_ptr<Task> { return std::make_unique<T>(config); },
      [](const Config& config, const Task::Vocabularies& vocabularies) -> std::unique_ptr<Task> {
        return std::make_unique<T>(config, vocabularies);
      },
      traits,
      conflict};
}

constexpr auto rows = std::to_array<TaskRow>({
    row<WordSense>(TaskKind::word_sense, "word-sense", "sense of a word in its sentence",
                   {.format = DataFormat::coarsewsd}),
    row<StaticEmbedding>(TaskKind::static_embedding, "static-embedding", "word vectors from text",
                         {}, StaticEmbedding::conflict),
    row<Classification>(TaskKind::classify, "classify", "class of a text"),
    row<Coreference>(TaskKind::coreference, "coreference", "word that a pronoun refers to"),
    row<Translation>(TaskKind::translate, "translate", "translation of a sentence",
                     {.predicts_words = true, .has_source_and_target = true}),
    row<LanguageModel>(TaskKind::language_model, "language-model", "next character",
                       {.predicts_words = true, .format = DataFormat::generated},
                       LanguageModel::conflict),
});
static_assert(lists_every_kind(rows));

}  // namespace

std::span<const TaskRow> task_kinds() {
  return rows;
}

std::unique_ptr<Task> make_task(const Config& config) {
  return row_of(rows, config.task.kind).make(config);
}

std::unique_ptr<Task> restore_task(const Config& config, const Task::Vocabularies& vocabularies) {
  return row_of(rows, config.task.kind).restore(config, vocabularies);
}

}  // namespace qkv
