#include <algorithm>
#include <utility>

#include "train/config/option_groups.h"
#include "train/config/task_kinds.h"
#include "train/config/toml_document.h"

namespace qkv {
namespace {

bool is_split(const Config& config) {
  return !config.task.data.empty();
}

constexpr Condition no_data = {"no task.data", [](const Config& c) { return !is_split(c); }};
constexpr Condition senses_of_words = {
    "task.kind \"word-sense\" and another task.tokenizer than \"char\"", [](const Config& c) {
      return c.task.kind == TaskKind::word_sense && cutting_of(c).kind != TokenizerKind::character;
    }};
constexpr Condition cut_valid = {"task.data without task.valid", [](const Config& c) {
                                   return is_split(c) && c.task.valid.empty();
                                 }};
constexpr Condition cut_test = {"task.data without task.test",
                                [](const Config& c) { return is_split(c) && c.task.test.empty(); }};
constexpr Condition static_task = {"task.kind \"static-embedding\"", [](const Config& c) {
                                     return c.task.kind == TaskKind::static_embedding;
                                   }};
constexpr Condition one_label = {"a task with one label an example", [](const Config& c) {
                                   return row_of(task_kinds(), c.task.kind).traits.has_one_label;
                                 }};
constexpr Condition has_columns = {
    "task.kind \"word-sense\", \"classify\", \"coreference\" or \"translate\"",
    [](const Config& c) {
      return one_label.holds(c) || c.task.kind == TaskKind::coreference ||
             c.task.kind == TaskKind::translate;
    }};
constexpr Condition negatives = {
    "task.kind \"static-embedding\" with task.objective \"skip-gram\" or \"cbow\"",
    [](const Config& c) { return !predicts_with_bias(c); }};
constexpr Condition byte_pairs = {"task.tokenizer \"bpe\"", [](const Config& c) {
                                    return c.task.tokenizer == TokenizerKind::bpe;
                                  }};
constexpr Condition bag_of_words = {
    "task.kind \"classify\", model.kind \"static\" and task.tokenizer \"word\"", is_bag_of_words};
constexpr Condition masks = {"task.kind \"masked-language-model\"", [](const Config& c) {
                               return c.task.kind == TaskKind::masked_language_model;
                             }};
constexpr Condition text = {"task.kind \"language-model\"", [](const Config& c) {
                              return c.task.kind == TaskKind::language_model;
                            }};
constexpr Condition sentences = {
    "another task.kind than \"language-model\", \"masked-language-model\" and "
    "\"static-embedding\"",
    [](const Config& c) {
      return c.task.kind != TaskKind::language_model && !static_task.holds(c) && !masks.holds(c);
    }};
constexpr Condition own_tokens = {"a task.tokenizer whose tokens are learned",
                                  [](const Config& c) { return !is_imported(cutting_of(c).kind); }};
/// A static model reads the word that it is asked about alone, which is never dropped.
constexpr Condition other_words = {
    "a task with one label an example, and not model.kind \"static\" in task.kind \"word-sense\"",
    [](const Config& c) {
      return one_label.holds(c) &&
             !(c.task.kind == TaskKind::word_sense && c.model.kind == ModelKind::static_embedding);
    }};
constexpr Condition labels = {"a task whose answers are labels", [](const Config& c) {
                                return row_of(task_kinds(), c.task.kind).traits.has_labels;
                              }};

/// Options that the task cannot work with.
std::optional<Conflict> task_conflict(const Config& config) {
  const TaskRow& task = row_of(task_kinds(), config.task.kind);
  if (auto conflict = task.conflict(config)) return conflict;
  if (task.traits.has_source_and_target != (config.model.kind == ModelKind::encoder_decoder))
    return Conflict{{"model.kind", "task.kind"},
                    fmt::format("task.kind {} and model.kind \"encoder-decoder\" need each other",
                                tasks_with(&TaskTraits::has_source_and_target))};
  const TokenizerKind tokenizer = cutting_of(config).kind;
  const bool learns_tokens =
      task.traits.has_source_and_target || config.task.kind == TaskKind::static_embedding;
  const bool has_mask = config.task.kind == TaskKind::masked_language_model;
  if ((is_imported(tokenizer) && learns_tokens) ||
      (tokenizer == TokenizerKind::byte_level && (has_mask || config.task.word_dropout > 0)))
    return Conflict{{"task.tokenizer", "task.kind", "task.word_dropout"},
                    fmt::format("task.tokenizer \"{}\" has no {}, which task.kind \"{}\" needs{}",
                                row_of(tokenizer_kinds, tokenizer).name,
                                learns_tokens ? "tokens of its own data" : "unknown token",
                                task.name, has_mask || learns_tokens ? "" : " for word dropout")};
  return std::nullopt;
}

/// An imported model has no data.
std::optional<Conflict> source_conflict(const Config& config) {
  if (!config.task.train.empty() || is_split(config)) return std::nullopt;
  return Conflict{{"task.train"}, "task.train must name the training file"};
}

std::optional<Conflict> stride_conflict(const Config& config) {
  const Index longest = config.model.max_length;
  if (!text.holds(config) || config.task.stride <= longest) return std::nullopt;
  return Conflict{{"task.stride", "model.max_length"},
                  fmt::format("task.stride must be at most model.max_length ({}), so that training "
                              "windows leave no token out, got {}",
                              longest, config.task.stride)};
}

/// K and N of "K/N"; 0 for what is no integer.
std::pair<Index, Index> fold_in(std::string_view text) {
  const auto slash = std::min(text.find('/'), text.size());
  const auto integer = [](std::string_view digits) {
    const auto value = parse_value(digits);
    const auto* number = value ? std::get_if<std::int64_t>(&*value) : nullptr;
    return number ? *number : 0;
  };
  return {integer(text.substr(0, slash)), integer(text.substr(std::min(slash + 1, text.size())))};
}

Option fold_option(TaskOptions& task) {
  const auto assign = [&task](const Value& value) -> std::optional<std::string> {
    constexpr Index most = 1000;
    const auto* text = std::get_if<std::string>(&value);
    const bool none = text && text->empty();
    const auto [fold, folds] = none || !text ? std::pair<Index, Index>(1, 0) : fold_in(*text);
    if (!none && (fold < 1 || fold > folds || folds < 2 || folds > most))
      return fmt::format("must be \"K/N\", part K of N, with N from 2 to {}, got {}", most,
                         describe(value));
    task.fold = fold;
    task.folds = folds;
    return std::nullopt;
  };
  const auto print = [&task] {
    return toml_string(task.folds > 0 ? fmt::format("{}/{}", task.fold, task.folds) : "");
  };
  return {.key = "task.fold",
          .help =
              "cross-validation: \"2/5\" makes the second of five parts of the training "
              "examples, each with its fraction of every label, the test data; empty: none",
          .type = "text K/N",
          .takes_text = true,
          .assign = assign,
          .print = print};
}

}  // namespace

Options task_options(TaskOptions& task) {
  return {
      checked_by(task_conflict, kind_option("task.kind", task.kind, task_kinds(), "task")),
      only_with(no_data, checked_at_start_by(source_conflict, path_option("task.train", task.train,
                                                                          "training file"))),
      path_option("task.valid", task.valid, "validation file, which selects the best checkpoint"),
      path_option("task.test", task.test, "test file"),
      path_option("task.data", task.data,
                  "one file to split into training, validation and test data"),
      only_with(has_columns,
                option("task.columns", task.columns,
                       "columns of the files in the order of the task, such as [\"sentiment\", "
                       "\"review\"] for label and text: names in the header, or numbers from 1")),
      only_with(senses_of_words,
                option("task.word", task.word,
                       "word whose sense is asked, at its first place in each sentence of files "
                       "without an index column, label<TAB>sentence")),
      only_with(cut_valid,
                option("task.valid_share", task.valid_share, between(0, 0.5),
                       "fraction of task.data for validation, where task.valid names no file")),
      only_with(cut_test,
                option("task.test_share", task.test_share, between(0, 0.5),
                       "fraction of task.data for testing, where task.test names no file")),
      fold_option(task),
      kind_option("task.tokenizer", task.tokenizer, tokenizer_kinds,
                  "kind of token; auto: char for language models, else word"),
      option("task.lower_case", task.lower_case,
             "lower case of A to Z; auto: except for language models"),
      only_with(byte_pairs, option("task.merges", task.merges, between(0, 1'000'000),
                                   "byte-pair merges to learn at most (bpe)")),
      only_with(bag_of_words,
                option("task.ngrams", task.ngrams, between(1, 5),
                       "length of the longest n-gram: sequences of words that are tokens behind "
                       "the words, such as \"not good\"")),
      only_with(sentences, option("task.truncate", task.truncate,
                                  "cut sentences to model.max_length, with a count; around the "
                                  "asked word")),
      only_with(labels,
                kind_option("task.unknown_labels", task.unknown_labels, unknown_label_policies,
                            "handling of examples whose label training has not seen")),
      only_with(own_tokens,
                option("task.min_count", task.min_count, at_least(1),
                       "minimum frequency of a word in the training data; rarer words become "
                       "<unk>")),
      only_with(other_words,
                option("task.word_dropout", task.word_dropout, at_least(0),
                       "a: training reads a word of frequency n as unknown with probability "
                       "a / (a + n)")),
      only_with(one_label, option("task.label_smoothing", task.label_smoothing, below_one(),
                                  "probability moved from the label to all labels in training")),
      only_with(one_label,
                kind_option("task.class_weights", task.class_weights, class_weights_kinds,
                            "weights of labels in the training loss")),
      only_with(text, checked_by(stride_conflict,
                                 option("task.stride", task.stride, at_least(1),
                                        "tokens from the start of a training window to the next; "
                                        "model.max_length: side by side (language-model)"))),
      only_with(masks, option("task.mask_probability", task.mask_probability,
                              Bounds{.low = 0, .high = 1, .low_is_open = true},
                              "fraction of tokens to predict (masked-language-model)")),
      only_with(static_task, kind_option("task.objective", task.objective, objectives,
                                         "objective of static-embedding")),
      only_with(static_task, option("task.window", task.window, between(1, 1000),
                                    "context window of static-embedding in words to either side")),
      only_with(negatives, option("task.negatives", task.negatives, between(1, 1000),
                                  "negative samples per positive pair (skip-gram, cbow)")),
  };
}

}  // namespace qkv
