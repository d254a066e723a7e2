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
#include "train/tasks/masked_language_model.h"
#include "train/tasks/static_embedding.h"
#include "train/tasks/tagging.h"
#include "train/tasks/translation.h"
#include "train/tasks/word_sense.h"

namespace qkv {
namespace {

LearnOptions learn_options(const Config& config) {
  return {.min_count = config.task.min_count, .merges = config.task.merges};
}

}  // namespace

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

double Evaluation::score_by(std::string_view name) const {
  constexpr std::string_view errors[] = {"loss", "perplexity", "bits_per_token", "error"};
  if (name.empty()) return score;
  const double value = name == "loss" ? loss : metric(name);
  return std::ranges::find(errors, name) == std::end(errors) ? value : -value;
}

std::string Evaluation::headline() const {
  return fmt::format("{} {:.4f}", metrics.front().first, metrics.front().second);
}

Cutting cutting_of(const Config& config) {
  const Cutting usual = row_of(task_kinds(), config.task.kind).traits.cutting;
  return {config.task.tokenizer.value_or(usual.kind),
          config.task.lower_case.value_or(usual.lower_case)};
}

Task::Task(const Config& config)
    : max_length_(config.model.max_length),
      learn_(learn_options(config)),
      truncates_(config.task.truncate || config.task.format == DataFormat::coarsewsd),
      cutting_(cutting_of(config)),
      columns_(config.task.columns) {}

void Task::learn_tokens(const Vocabulary::Counts& pieces, const Vocabularies& known) {
  if (is_imported(cutting_.kind)) {
    require<UserError>(!known.empty(),
                       "task.tokenizer \"{}\" has the tokens of an imported model; name its run "
                       "with train.init",
                       row_of(tokenizer_kinds, cutting_.kind).name);
    return restore_tokens(known);
  }
  set_tokenizer(Tokenizer::learn(cutting_, pieces, learn_,
                                 known.empty() ? Tokens() : token_list(known, "tokens")));
}

void Task::restore_tokens(const Vocabularies& vocabularies) {
  const bool merges = cutting_.kind == TokenizerKind::byte_level;
  set_tokenizer({cutting_, token_list(vocabularies, "tokens"),
                 merges ? token_list(vocabularies, "merges") : Tokens()});
}

Task::Vocabularies Task::vocabularies() const {
  Vocabularies lists = {{"tokens", vocabulary().tokens()}};
  if (const ByteMerges* merges = tokenizer().merges()) lists["merges"] = merges->texts();
  return lists;
}

void Task::set_tokenizer(Tokenizer tokenizer) {
  const Index ends = 2 * tokenizer.special_tokens();
  require<UserError>(max_length_ > ends,
                     "model.max_length = {} must be more than the {} tokens that begin and end a "
                     "sentence",
                     max_length_, ends);
  tokenizer_ = std::make_shared<const Tokenizer>(std::move(tokenizer));
}

Evaluation Task::evaluate(const Network& network, const std::filesystem::path& file) const {
  ReadCallback silent;
  return evaluate(network, file, silent, {});
}

TokenCount Task::token_count_of(const IdLists& lists) const {
  TokenCount count;
  for (Index i = 0; i < lists.size(); ++i) {
    const auto ids = lists[i];
    count.all += std::ssize(ids);
    count.unknown +=
        std::ranges::count_if(ids, [&](std::int32_t id) { return vocabulary().is_unknown(id); });
  }
  return count;
}

LabelledText Task::text_of_ids(std::vector<std::int32_t> ids) const {
  LabelledText text;
  for (const std::int32_t id : ids) text.sentence.words.push_back(vocabulary().token(id));
  text.text = tokenizer().joined(text.sentence.words);
  text.sentence.ids = std::move(ids);
  return text;
}

Sentence Task::sentence_of(std::span<const std::string> pieces) const {
  Sentence sentence;
  for (const std::string& piece : pieces) {
    tokenizer().encode_piece(piece, sentence.ids);
    for (std::string& token : tokenizer().tokens_of(piece))
      sentence.words.push_back(std::move(token));
  }
  return sentence;
}

Sentence Task::read(std::string_view text) const {
  return fitted(sentence_of(cut_sentence(text, cutting_).pieces));
}

Index Task::crop_begin(Index length, Index index) const {
  const Index begin = tokenizer().special_tokens();
  return qkv::crop_begin(length - 2 * begin, index - begin, max_length() - 2 * begin);
}

Sentence Task::fitted(Sentence sentence) const {
  require<UserError>(!sentence.words.empty(), "the sentence is empty; give at least one word");
  const Index length = std::ssize(sentence.words);
  require<UserError>(length <= max_length() || truncates_,
                     "the sentence has {} {}, more than the model's longest, model.max_length = {}",
                     length, cutting_.kind == TokenizerKind::word ? "words" : "tokens",
                     max_length());
  if (length > max_length()) {
    crop(sentence.words);
    crop(sentence.ids);
  }
  return sentence;
}

void Task::for_each_line(const std::filesystem::path& file, ReadCallback& callback,
                         const UseRow& use) const {
  for_each_row(file, Columns(form(), columns_, true), callback, use);
}

std::vector<Index> Task::occurrences(const Sentence& sentence, const std::string& word) const {
  std::vector<std::string> wanted = {word};
  if (std::ranges::find(sentence.words, word) == sentence.words.end()) {
    const auto [pieces, positions] = cut_phrase(word, cutting_);
    const auto named = std::ranges::find_if(positions, [](Index piece) { return piece >= 0; });
    if (named == positions.end()) return {};
    const auto first = pieces.begin() + *named;
    wanted = sentence_of({first, std::find_if(first + 1, pieces.end(), is_one_mark)}).words;
  }
  std::vector<Index> found;
  for (auto at = sentence.words.begin();; ++at) {
    at = std::search(at, sentence.words.end(), wanted.begin(), wanted.end());
    if (at == sentence.words.end()) return found;
    found.push_back(at - sentence.words.begin());
  }
}

LabelledText Task::read_line(const TsvRow& row) const {
  row.require_labelled_text();
  LabelledText line{.text = row.fields.back(), .sentence = read(row.fields.back())};
  if (row.fields.size() == 3)
    line.index = row.position(1, row.sentence(2, cutting_));
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

Random Task::drawn_for(std::span<const std::int32_t> ids) {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a, of ids in place of bytes
  for (const std::int32_t id : ids) hash = (hash ^ static_cast<std::uint32_t>(id)) * 0x100000001B3;
  constexpr int unused_bits = 64 - 46;  // see `Random::bits`
  return {0, Purpose::sampling, hash >> unused_bits};
}

std::optional<WrittenText> Task::write(const Network&, const Sentence&, std::string_view) const {
  return std::nullopt;
}

Scores Task::scores_of_token(const Network& network, const Sentence& sentence, Index index,
                             Context& context, std::vector<std::string> choices) {
  const Indices ids(sentence.ids, {1, std::ssize(sentence.ids)});
  const Tensor x = (*network.model)(ids, {}, context);
  return {reshape(network.logits(slice(x, 1, index, index + 1)), {-1}), std::move(choices),
          "W y_i + b"};
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
                                           std::string_view name) {
  const auto found = vocabularies.find(std::string(name));
  require<FileError>(found != vocabularies.end() && !found->second.empty(),
                     "the checkpoint has no /vocabulary/{}", name);
  require<FileError>(std::ranges::find(found->second, "") == found->second.end(),
                     "the checkpoint's /vocabulary/{} has an empty text", name);
  return found->second;
}

const std::vector<std::string>& distinct_list(const Task::Vocabularies& vocabularies,
                                              std::string_view name) {
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
      [](const Config& config, const Task::Vocabularies& known, ReadCallback& callback)
          -> std::unique_ptr<Task> { return std::make_unique<T>(config, known, callback); },
      [](const Config& config, const Task::Vocabularies& vocabularies) -> std::unique_ptr<Task> {
        return std::make_unique<T>(config, vocabularies);
      },
      traits,
      conflict};
}

constexpr auto rows = std::to_array<TaskRow>({
    row<WordSense>(TaskKind::word_sense, "word-sense", "sense of a word in its sentence",
                   {.format = DataFormat::coarsewsd, .has_labels = true, .has_one_label = true}),
    row<StaticEmbedding>(TaskKind::static_embedding, "static-embedding", "word vectors from text",
                         {}, StaticEmbedding::conflict),
    row<Classification>(TaskKind::classify, "classify", "class of a text",
                        {.has_labels = true, .has_one_label = true}),
    row<Coreference>(TaskKind::coreference, "coreference", "word that a pronoun refers to"),
    row<Translation>(TaskKind::translate, "translate", "translation of a sentence",
                     {.predicts_words = true, .has_source_and_target = true},
                     Translation::conflict),
    row<LanguageModel>(TaskKind::language_model, "language-model", "next token",
                       {.predicts_words = true,
                        .format = DataFormat::generated,
                        .cutting = {TokenizerKind::character, false}},
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
  require<UserError>(config.task.format != DataFormat::none,
                     "task.format \"none\": the model was imported without data; name a file with "
                     "--data where the command has it, or train another run from it (train.init)");
  return row_of(rows, config.task.kind).make(config, known, callback);
}

std::unique_ptr<Task> make_task(const Config& config, ReadCallback& callback) {
  return make_task(config, {}, callback);
}

std::unique_ptr<Task> make_task(const Config& config) {
  ReadCallback silent;
  return make_task(config, silent);
}

std::unique_ptr<Task> restore_task(const Config& config, const Task::Vocabularies& vocabularies) {
  return row_of(rows, config.task.kind).restore(config, vocabularies);
}

}  // namespace qkv
