#include "train/config/option_list.h"

#include <fmt/format.h>

#include "core/kinds.h"
#include "layers/model.h"
#include "layers/positions.h"
#include "layers/recurrent.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/config/task_kinds.h"

namespace qkv {
namespace {

using Options = std::vector<Option>;

/// When an option has an effect.
struct Condition {
  std::string_view text;  ///< "model.kind \"recurrent\""
  bool (*holds)(const Config&);
};

bool attends(const Config& config) {
  return is_transformer(config.model.kind);
}

/// Of an encoder-decoder the decoder is learned where the encoder is parameter-free.
bool has_heads(const Config& config) {
  return attends(config) && (config.model.attention != AttentionKind::parameter_free ||
                             config.model.kind == ModelKind::encoder_decoder);
}

/// Whether positions act in some attention; see `has_heads`.
bool positions_attend(const Config& config) {
  ModelOptions learned = config.model;
  if (has_heads(config) && learned.attention == AttentionKind::parameter_free)
    learned.attention = AttentionKind::learned;
  return attends(config) && (acts_in_attention(config.model) || acts_in_attention(learned));
}

bool learns_vectors(const Config& config) {
  return config.task.kind == TaskKind::static_embedding;
}

/// Whether `OutputTransform` computes the logits.
bool transforms(const Config& config) {
  return config.model.output == OutputKind::transformed && !learns_vectors(config);
}

bool is_split(const Config& config) {
  const DataFormat format = config.task.format;
  return format == DataFormat::coarsewsd || format == DataFormat::generated ||
         !config.task.data.empty();
}

bool is_recurrent(const Config& config) {
  return config.model.kind == ModelKind::recurrent;
}

// What the options below need, each with the words that an error has for it.
constexpr Condition no_data = {"task.format \"files\" without task.data", [](const Config& c) {
                                 return c.task.format == DataFormat::files && c.task.data.empty();
                               }};
constexpr Condition own_files = {"another task.format than \"coarsewsd\"", [](const Config& c) {
                                   return c.task.format != DataFormat::coarsewsd;
                                 }};
constexpr Condition some_data = {"another task.format than \"generated\"", [](const Config& c) {
                                   return c.task.format != DataFormat::generated;
                                 }};
constexpr Condition senses_of_files = {
    "task.kind \"word-sense\", task.format \"files\" and another task.tokenizer than \"char\"",
    [](const Config& c) {
      return c.task.kind == TaskKind::word_sense && c.task.format == DataFormat::files &&
             cutting_of(c).kind != TokenizerKind::character;
    }};
constexpr Condition cut_valid = {
    "task.data without task.valid", [](const Config& c) {
      return is_split(c) && (c.task.valid.empty() || c.task.format == DataFormat::coarsewsd);
    }};
constexpr Condition cut_test = {"task.data without task.test", [](const Config& c) {
                                  return is_split(c) && c.task.test.empty() &&
                                         c.task.format != DataFormat::coarsewsd;
                                }};
constexpr Condition static_task = {"task.kind \"static-embedding\"", learns_vectors};
constexpr Condition one_label = {"a task with one label an example", [](const Config& c) {
                                   return row_of(task_kinds(), c.task.kind).traits.has_one_label;
                                 }};
constexpr Condition folds = {
    "task.folds", [](const Config& c) { return one_label.holds(c) && c.task.folds > 0; }};
constexpr Condition has_columns = {
    "task.format \"files\" and task.kind \"word-sense\", \"classify\", \"coreference\" or "
    "\"translate\"",
    [](const Config& c) {
      return c.task.format == DataFormat::files &&
             (one_label.holds(c) || c.task.kind == TaskKind::coreference ||
              c.task.kind == TaskKind::translate);
    }};
constexpr Condition negatives = {
    "task.kind \"static-embedding\" with task.objective \"skip-gram\" or \"cbow\"",
    [](const Config& c) { return learns_vectors(c) && c.task.objective != Objective::glove; }};
constexpr Condition network_output = {"another task.kind than \"static-embedding\"",
                                      [](const Config& c) { return !learns_vectors(c); }};
constexpr Condition byte_pairs = {"task.tokenizer \"bpe\"", [](const Config& c) {
                                    return c.task.tokenizer == TokenizerKind::bpe;
                                  }};
constexpr Condition masks = {"task.kind \"masked-language-model\"", [](const Config& c) {
                               return c.task.kind == TaskKind::masked_language_model;
                             }};
constexpr Condition text = {"task.kind \"language-model\"", [](const Config& c) {
                              return c.task.kind == TaskKind::language_model;
                            }};
constexpr Condition sentences = {
    "another task.kind than \"language-model\", \"masked-language-model\" and "
    "\"static-embedding\", and another task.format than \"coarsewsd\", whose sentences are cut "
    "always",
    [](const Config& c) {
      return c.task.kind != TaskKind::language_model && !learns_vectors(c) && !masks.holds(c) &&
             own_files.holds(c);
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
/// Log-count ratios start a model whose logits are linear in its embeddings.
constexpr Condition linear = {
    "a task with one label an example, and model.kind \"static\" or \"encoder\" with one layer, "
    "heads that share no keys, model.norm \"none\" and model.feed_forward = 0, and without "
    "parameter-free attention, positions in the embeddings, embedding_file and one-hot vectors",
    [](const Config& c) {
      const ModelOptions& m = c.model;
      const bool plain = one_label.holds(c) && m.embedding == EmbeddingKind::learned &&
                         m.embedding_file.empty() && m.output == OutputKind::linear &&
                         m.pooling == PoolingKind::mean;
      const bool linear_attention =
          m.kind == ModelKind::encoder && m.attention != AttentionKind::parameter_free &&
          m.layers == 1 && m.feed_forward == 0 && m.norm == NormKind::none && !m.embedding_norm &&
          m.token_types == 0 && m.kv_heads % m.heads == 0 &&
          !row_of(position_kinds(), m.position).input;
      return plain && (m.kind == ModelKind::static_embedding || linear_attention);
    }};
constexpr Condition attention = {"model.kind \"encoder\", \"decoder\" or \"encoder-decoder\"",
                                 attends};
constexpr Condition heads = {"a model whose attention is not parameter-free", has_heads};
/// Heads of equal weights are one, but a width that the default does not divide needs another
/// number.
constexpr Condition unequal_heads = {
    "learned attention, or uniform with model.kv_heads, model.dropout or model.init "
    "\"log-count-ratios\"",
    [](const Config& c) {
      return has_heads(c) && (c.model.attention != AttentionKind::uniform || c.model.kv_heads > 0 ||
                              c.model.dropout > 0 || c.model.init != InitKind::random ||
                              c.model.width % ModelOptions().heads != 0);
    }};
constexpr Condition scores = {"a model with attention that is not uniform", [](const Config& c) {
                                return attends(c) && c.model.attention != AttentionKind::uniform;
                              }};
constexpr Condition relative = {"model.position \"relative\" or \"windows\" with learned attention",
                                [](const Config& c) {
                                  return (c.model.position == PositionKind::relative ||
                                          c.model.position == PositionKind::windows) &&
                                         positions_attend(c);
                                }};
constexpr Condition pooled = {
    "task.kind \"classify\" with model.kind \"encoder\" or \"decoder\"",
    [](const Config& c) { return attends(c) && c.task.kind == TaskKind::classify; }};
constexpr Condition layers = {
    "another model.kind than \"static\" and \"feed-forward\"", [](const Config& c) {
      return c.model.kind != ModelKind::static_embedding && c.model.kind != ModelKind::fixed_length;
    }};
constexpr Condition hidden = {
    "model.kind \"feed-forward\", or attention that is not parameter-free",
    [](const Config& c) { return has_heads(c) || c.model.kind == ModelKind::fixed_length; }};
constexpr Condition activated = {
    "a feed-forward sub-layer, model.kind \"feed-forward\" or model.output \"transformed\"",
    [](const Config& c) { return (hidden.holds(c) && c.model.feed_forward > 0) || transforms(c); }};
constexpr Condition normalized = {
    "attention with model.norm, model.embedding_norm or model.output \"transformed\"",
    [](const Config& c) {
      return (has_heads(c) && c.model.norm != NormKind::none) ||
             (attends(c) && c.model.embedding_norm) || transforms(c);
    }};
/// Recurrent and convolutional layers always have biases.
constexpr Condition biased = {
    "a bias to leave out, which skip-gram and CBOW do not use, nor static, recurrent and "
    "convolutional models whose output is tied",
    [](const Config& c) {
      return !negatives.holds(c) &&
             (!c.model.tied || transforms(c) || hidden.holds(c) || normalized.holds(c));
    }};
/// A decoder starts as GPT-2.
constexpr Condition drawn_table = {
    "another model.kind than \"decoder\", and model.embedding \"learned\", model.position "
    "\"learned\" or model.token_types",
    [](const Config& c) {
      return c.model.kind != ModelKind::decoder &&
             (c.model.embedding == EmbeddingKind::learned ||
              (attends(c) &&
               (c.model.position == PositionKind::learned || c.model.token_types > 0)));
    }};
constexpr Condition learned_table = {"model.embedding \"learned\"", [](const Config& c) {
                                       return c.model.embedding == EmbeddingKind::learned;
                                     }};
constexpr Condition recurrent = {"model.kind \"recurrent\"", is_recurrent};
constexpr Condition counts_steps = {"train.epochs = 0",
                                    [](const Config& c) { return c.train.epochs == 0; }};
constexpr Condition activations = {"another model.kind than \"static\"", [](const Config& c) {
                                     return c.model.kind != ModelKind::static_embedding;
                                   }};

/// An option that has an effect on some condition only.
Option only_with(const Condition& condition, Option option) {
  option.needs = condition.text;
  option.holds = condition.holds;
  return option;
}

/// The names of a table's kinds for which `suits` holds.
template <class Rows, class Suits>
std::vector<std::string> names_with(const Rows& rows, Suits suits) {
  std::vector<std::string> names;
  for (const auto& row : rows)
    if (suits(row)) names.emplace_back(row.name);
  return names;
}

/// Names with `quote` around each, and `last` before the last: `"a", "b" or "c"`.
std::string list_of(const std::vector<std::string>& names, std::string_view quote,
                    std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last : ", ";
    text += fmt::format("{0}{1}{0}", quote, names[i]);
  }
  return text;
}

/// `"a", "b" or "c"`.
std::string any_of(const std::vector<std::string>& names) {
  return list_of(names, "\"", " or ");
}

/// An option that some optimizers read, which its help names.
Option read_by(bool OptimizerTraits::*reads, Option option) {
  const auto names =
      names_with(optimizer_kinds(), [=](const OptimizerRow& row) { return row.reads.*reads; });
  option.help += fmt::format(" ({})", list_of(names, "", ", "));
  option.needs = "optimizer.kind " + any_of(names);
  option.holds = [=](const Config& c) {
    return row_of(optimizer_kinds(), c.optimizer.kind).reads.*reads;
  };
  return option;
}

/// An option that some schedules read.
Option read_by(bool ScheduleRow::*reads, Option option) {
  const auto names =
      names_with(schedule_kinds(), [=](const ScheduleRow& row) { return row.*reads; });
  option.needs = "schedule.kind " + any_of(names);
  option.holds = [=](const Config& c) { return row_of(schedule_kinds(), c.schedule.kind).*reads; };
  return option;
}

Options run_options(Config& run) {
  return {
      name_option("name", run.name, "name of the run and its folder"),
      option("seed", run.seed, at_least(0), "random seed; equal seeds give equal runs"),
  };
}

Options task_options(TaskOptions& task) {
  return {
      kind_option("task.kind", task.kind, task_kinds(), "task"),
      kind_option("task.format", task.format, data_formats, "source of the data"),
      only_with(no_data, path_option("task.train", task.train, "training file")),
      only_with(own_files, path_option("task.valid", task.valid,
                                       "validation file, which selects the best checkpoint")),
      only_with(own_files, path_option("task.test", task.test, "test file")),
      only_with(some_data,
                path_option("task.data", task.data,
                            "one file to split into training, validation and test data, or with "
                            "coarsewsd the folder with train.data.txt")),
      only_with(has_columns,
                option("task.columns", task.columns,
                       "columns of the files that are the task's, in its order, as [\"sentiment\", "
                       "\"review\"] for label and text: names in the header, or numbers from 1")),
      only_with(senses_of_files,
                option("task.word", task.word,
                       "word whose sense is asked, at its first place in each sentence of files "
                       "without an index column, label<TAB>sentence")),
      only_with(cut_valid,
                option("task.valid_share", task.valid_share, between(0, 0.5),
                       "fraction of task.data for validation, where task.valid names no file")),
      only_with(cut_test,
                option("task.test_share", task.test_share, between(0, 0.5),
                       "fraction of task.data for testing, where task.test names no file")),
      only_with(one_label,
                option("task.folds", task.folds, between(0, 1000),
                       "cross-validation: parts into which the training examples are divided, each "
                       "with its share of every label; one is the test data")),
      only_with(folds, option("task.fold", task.fold, at_least(1),
                              "the part of task.folds that is the test data, from 1")),
      kind_option("task.tokenizer", task.tokenizer, tokenizer_kinds,
                  "what a token is; auto: char of a language model, else word"),
      option("task.lower_case", task.lower_case,
             "A to Z read as a to z; auto: but for a language model"),
      only_with(byte_pairs, option("task.merges", task.merges, between(0, 1'000'000),
                                   "byte-pair merges to learn at most (bpe)")),
      only_with(sentences, option("task.truncate", task.truncate,
                                  "cut sentences to model.max_length, with a count; around the "
                                  "word that is asked about")),
      only_with(labels,
                kind_option("task.unknown_labels", task.unknown_labels, unknown_label_policies,
                            "what to do with examples whose label training has not seen")),
      only_with(own_tokens,
                option("task.min_count", task.min_count, at_least(1),
                       "minimum frequency of a word in the training data; rarer words become "
                       "<unk>")),
      only_with(other_words,
                option("task.word_dropout", task.word_dropout, at_least(0),
                       "a: a word of frequency n is read as if it were not in the training data "
                       "with probability a / (a + n) in training")),
      only_with(one_label, option("task.label_smoothing", task.label_smoothing, below_one(),
                                  "probability moved from the label to all labels in training")),
      only_with(one_label,
                kind_option("task.class_weights", task.class_weights, class_weights_kinds,
                            "weights of labels in the training loss")),
      only_with(text, option("task.stride", task.stride, at_least(1),
                             "tokens from the start of a training window to the next; "
                             "model.max_length: side by side (language-model)")),
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

Options model_options(ModelOptions& model) {
  return {
      kind_option("model.kind", model.kind, model_kinds(), "architecture"),
      option("model.width", model.width, between(1, 4096), "embedding dimension (d_model)"),
      only_with(layers,
                option("model.layers", model.layers, between(1, 64), "layers in the stack")),
      only_with(unequal_heads, option("model.heads", model.heads, between(1, 256),
                                      "attention heads of a layer; must divide model.width")),
      only_with(heads, option("model.kv_heads", model.kv_heads, between(0, 256),
                              "key and value heads, each shared by several query heads "
                              "(grouped-query attention); 0: model.heads")),
      only_with(attention, kind_option("model.attention", model.attention, attention_kinds,
                                       "attention weights")),
      only_with(scores, option("model.scale", model.scale,
                               "division of scores by sqrt(width / heads), of parameter-free "
                               "attention by sqrt(width)")),
      only_with(attention, kind_option("model.position", model.position, position_kinds(),
                                       "positional encoding")),
      only_with(relative, option("model.max_distance", model.max_distance, between(1, 1024),
                                 "distance in tokens from which on relative positions are equal")),
      only_with(hidden, option("model.feed_forward", model.feed_forward, between(0, 65536),
                               "hidden dimension of the feed-forward sub-layer; 0: none")),
      only_with(activated,
                kind_option("model.activation", model.activation, activation_kinds,
                            "activation of the feed-forward sub-layer and the transformed output")),
      only_with(heads, kind_option("model.norm", model.norm, norm_kinds, "layer normalization")),
      only_with(normalized, option("model.norm_epsilon", model.norm_epsilon, above(0),
                                   "epsilon added to the variance in layer normalization")),
      only_with(attention, option("model.embedding_norm", model.embedding_norm,
                                  "layer normalization of the first layer's input")),
      only_with(attention, option("model.token_types", model.token_types, between(0, 64),
                                  "rows of a table of token types, of which the first is added to "
                                  "the embeddings; 0: none")),
      only_with(pooled,
                kind_option("model.pooling", model.pooling, pooling_kinds, "vector of a text")),
      only_with(network_output,
                kind_option("model.output", model.output, output_kinds, "output layer")),
      only_with(biased, option("model.bias", model.bias, "biases of linear layers and norms")),
      option("model.tied", model.tied,
             "weight tying: the embedding table as the output layer's weight"),
      kind_option("model.embedding", model.embedding, embedding_kinds, "embedding table"),
      only_with(drawn_table,
                option("model.embedding_std", model.embedding_std, at_least(0),
                       "initial standard deviation of the embeddings; of a decoder it is 0.02")),
      only_with(linear, kind_option("model.init", model.init, init_kinds, "initial parameters")),
      path_option("model.embedding_file", model.embedding_file,
                  "word2vec or GloVe text file of initial embeddings"),
      only_with(learned_table,
                option("model.freeze_embedding", model.freeze_embedding, "frozen embedding table")),
      only_with(recurrent, kind_option("model.cell", model.cell, cell_kinds(), "recurrent cell")),
      only_with(recurrent, option("model.bidirectional", model.bidirectional,
                                  "recurrent network in both directions, half of the width each")),
      only_with(activations,
                option("model.dropout", model.dropout, below_one(), "dropout probability")),
      option("model.max_length", model.max_length, between(1, 65536),
             "maximum sequence length in tokens"),
  };
}

Options optimizer_options(OptimizerOptions& optimizer) {
  return {
      kind_option("optimizer.kind", optimizer.kind, optimizer_kinds(), "update rule"),
      option("optimizer.lr", optimizer.lr, above(0), "learning rate"),
      read_by(&OptimizerTraits::momentum,
              option("optimizer.momentum", optimizer.momentum, below_one(), "momentum")),
      read_by(&OptimizerTraits::nesterov,
              option("optimizer.nesterov", optimizer.nesterov, "Nesterov momentum")),
      read_by(&OptimizerTraits::beta1,
              option("optimizer.beta1", optimizer.beta1, below_one(), "decay of the first moment")),
      read_by(&OptimizerTraits::beta2, option("optimizer.beta2", optimizer.beta2, below_one(),
                                              "decay of the second moment")),
      read_by(&OptimizerTraits::amsgrad, option("optimizer.amsgrad", optimizer.amsgrad,
                                                "AMSGrad: maximum of all second moments so far")),
      read_by(&OptimizerTraits::epsilon, option("optimizer.epsilon", optimizer.epsilon, above(0),
                                                "term added to the denominator")),
      option("optimizer.weight_decay", optimizer.weight_decay, at_least(0),
             "weight decay; spares biases, norms, embeddings and positions"),
      option("optimizer.require_gradients", optimizer.require_gradients,
             "error when a parameter receives no gradient"),
  };
}

Options schedule_options(ScheduleOptions& schedule) {
  return {
      kind_option("schedule.kind", schedule.kind, schedule_kinds(),
                  "learning rate after the warm-up"),
      option("schedule.warmup", schedule.warmup, at_least(0),
             "linear warm-up of the learning rate in steps"),
      read_by(&ScheduleRow::floor, option("schedule.floor", schedule.floor, below_one(),
                                          "final fraction of the learning rate")),
  };
}

Options train_options(TrainOptions& train) {
  return {
      path_option("train.init", train.init,
                  "trained model to start from, a run folder or checkpoint: parameters of the same "
                  "path and shape, vectors by token, and its vocabulary"),
      option(
          "train.freeze", train.freeze,
          "parts that are not trained, by their paths or the ends of these, as in [\"embedding\", "
          "\"layers.0\"]"),
      only_with(counts_steps, option("train.steps", train.steps, at_least(1), "optimizer steps")),
      option("train.epochs", train.epochs, between(0, 1e6),
             "passes over the training examples, in place of train.steps; 0: train.steps"),
      option("train.batch", train.batch, between(1, 65536), "micro-batch size in examples"),
      option("train.accumulate", train.accumulate, between(1, 65536),
             "micro-batches per step (gradient accumulation)"),
      option("train.clip", train.clip, at_least(0), "maximum gradient norm; 0: no clipping"),
      option("train.clip_value", train.clip_value, at_least(0),
             "maximum absolute value of gradient elements; 0: no clipping"),
      option("train.ema", train.ema, below_one(),
             "decay of the moving average of the weights, which is evaluated and saved; 0: none"),
      option("train.eval_every", train.eval_every, at_least(1), "steps between evaluations"),
      option("train.checkpoint_every", train.checkpoint_every, at_least(1),
             "steps between checkpoints"),
      option(
          "train.patience", train.patience, at_least(0),
          "evaluations in a row without a better checkpoint after which training ends; 0: never"),
      option("train.select", train.select,
             "metric of the validation data that selects the best checkpoint: loss, or one that "
             "eval prints; empty: the task's own"),
      kind_option("train.on_divergence", train.on_divergence, divergence_policies,
                  "what to do when the loss explodes, or it or a gradient is not finite"),
      memory_option(
          "train.memory", train.memory,
          "memory budget as in \"4GB\": to keep to it, training recomputes activations in "
          "backward and computes fewer shards at a time, which changes no bits; empty: "
          "what is fastest"),
      option(
          "train.shard_optimizer", train.shard_optimizer,
          "with mpirun, each rank keeps the optimizer state of a part of the parameters (ZeRO-1)"),
      option("train.detect_anomaly", train.detect_anomaly,
             "error that names the first op to produce a NaN or infinity; slow"),
      option("train.tensorboard", train.tensorboard,
             "write a TensorBoard event file into the run's folder tensorboard (docs/metrics.md)"),
      option("train.keep", train.keep, at_least(1), "number of newest checkpoints to keep"),
  };
}

/// The tasks with a trait: `"translate" or "language-model"`.
std::string tasks_with(bool TaskTraits::*trait) {
  return any_of(names_with(task_kinds(), [=](const TaskRow& row) { return row.traits.*trait; }));
}

/// What the task cannot work with.
std::optional<Conflict> task_conflict(const Config& config) {
  const TaskRow& task = row_of(task_kinds(), config.task.kind);
  for (const TaskRow& other : task_kinds())
    if (other.traits.format == config.task.format && other.value != task.value)
      return Conflict{{"task.format", "task.kind"},
                      fmt::format("task.format \"{}\" needs task.kind = \"{}\"",
                                  row_of(data_formats, config.task.format).name, other.name)};
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
  if (config.model.tied && !task.traits.predicts_words)
    return Conflict{{"model.tied", "task.kind"},
                    fmt::format("model.tied needs a task whose outputs are words: {}",
                                tasks_with(&TaskTraits::predicts_words))};
  return std::nullopt;
}

/// What a run that starts from a trained model cannot have.
std::optional<Conflict> init_conflict(const Config& config) {
  if (config.train.init.empty()) return std::nullopt;
  if (config.model.init != InitKind::random)
    return Conflict{{"train.init", "model.init"}, "train.init needs model.init = \"random\""};
  if (config.model.embedding != EmbeddingKind::learned)
    return Conflict{{"train.init", "model.embedding"},
                    "train.init needs model.embedding = \"learned\""};
  return std::nullopt;
}

}  // namespace

bool predicts_with_bias(const Config& config) {
  return !negatives.holds(config);
}

std::vector<Option> options_of(Config& config) {
  Options all;
  for (const Options& section : {run_options(config), task_options(config.task),
                                 model_options(config.model), optimizer_options(config.optimizer),
                                 schedule_options(config.schedule), train_options(config.train)})
    all.insert(all.end(), section.begin(), section.end());
  return all;
}

std::optional<Conflict> find_conflict(const Config& config) {
  const TaskOptions& task = config.task;
  const ModelOptions& model = config.model;
  if (config.name.empty())
    return Conflict{{}, "name is missing; a run needs one, as in name = \"bank\""};
  if (task.format == DataFormat::files && task.train.empty() && task.data.empty())
    return Conflict{{"task.train", "task.format"}, "task.train must name the training file"};
  if (auto conflict = task_conflict(config)) return conflict;
  if (model.embedding == EmbeddingKind::one_hot && !model.embedding_file.empty())
    return Conflict{{"model.embedding_file", "model.embedding"},
                    "model.embedding \"one-hot\" takes no model.embedding_file"};
  if (task.format == DataFormat::coarsewsd && task.data.empty())
    return Conflict{{"task.data", "task.format"},
                    "task.data must name a folder when task.format is \"coarsewsd\""};
  if (text.holds(config) && task.stride > model.max_length)
    return Conflict{
        {"task.stride", "model.max_length"},
        fmt::format("task.stride must be at most model.max_length ({}), so that training "
                    "windows leave no token out, got {}",
                    model.max_length, task.stride)};
  if (task.folds == 1) return Conflict{{"task.folds"}, "task.folds must be 0 or at least 2, got 1"};
  if (folds.holds(config) && task.fold > task.folds)
    return Conflict{
        {"task.fold", "task.folds"},
        fmt::format("task.fold must be at most task.folds ({}), got {}", task.folds, task.fold)};
  if (auto conflict = init_conflict(config)) return conflict;
  if (config.optimizer.nesterov && config.optimizer.momentum == 0)
    return Conflict{{"optimizer.nesterov", "optimizer.momentum"},
                    "optimizer.nesterov needs optimizer.momentum to be above 0"};
  if (model.kind == ModelKind::fixed_length && model.feed_forward == 0)
    return Conflict{{"model.feed_forward", "model.kind"},
                    "model.feed_forward must be > 0 when model.kind is \"feed-forward\""};
  if (model.kind == ModelKind::convolution && model.width < 3)
    return Conflict{{"model.width", "model.kind"},
                    fmt::format("model.width must be at least 3 for the kernels of a convolution, "
                                "got {}",
                                model.width)};
  if (has_heads(config) && model.width % model.heads != 0)
    return Conflict{
        {"model.heads", "model.width"},
        fmt::format("model.heads must divide model.width ({}), got {}", model.width, model.heads)};
  if (has_heads(config) && model.kv_heads && model.heads % model.kv_heads != 0)
    return Conflict{{"model.kv_heads", "model.heads"},
                    fmt::format("model.kv_heads must divide model.heads ({}), got {}", model.heads,
                                model.kv_heads)};
  const Index head_width = has_heads(config) ? model.width / model.heads : model.width;
  if (attends(config) && model.position == PositionKind::rotary && head_width % 2 != 0)
    return Conflict{{"model.position", "model.width", "model.heads"},
                    fmt::format("model.position \"rotary\" rotates pairs: the width of a head must "
                                "be even, got {}",
                                head_width)};
  if (model.kind == ModelKind::recurrent && model.bidirectional && model.width % 2 != 0)
    return Conflict{{"model.bidirectional", "model.width"},
                    fmt::format("model.width must be even when model.bidirectional is true, got {}",
                                model.width)};
  return std::nullopt;
}

std::optional<Conflict> find_conflict_at_start(const Config& config) {
  const ModelOptions& model = config.model;
  const PositionRow& position = row_of(position_kinds(), model.position);
  if (attends(config) && position.attention && !positions_attend(config))
    return Conflict{{"model.position", "model.attention"},
                    fmt::format("model.position \"{}\" has no effect on model.attention \"{}\"; "
                                "choose another, as \"none\"",
                                position.name, row_of(attention_kinds, model.attention).name)};
  if (masks.holds(config) &&
      (model.kind == ModelKind::decoder || (is_recurrent(config) && !model.bidirectional)))
    return Conflict{
        {"model.kind", "model.bidirectional", "task.kind"},
        "task.kind \"masked-language-model\" predicts a token from both sides, of which "
        "model.kind = \"decoder\", and \"recurrent\" without model.bidirectional, see "
        "one alone"};
  return std::nullopt;
}

}  // namespace qkv
