#include "train/config/option_list.h"

#include <fmt/format.h>

#include "layers/model.h"
#include "layers/positions.h"
#include "layers/recurrent.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace qkv {
namespace {

using Options = std::vector<Option>;

bool attends(const Config& config) {
  const ModelKind kind = config.model.kind;
  return kind == ModelKind::encoder || kind == ModelKind::decoder ||
         kind == ModelKind::encoder_decoder;
}

/// Of an encoder-decoder the decoder is learned where the encoder is parameter-free.
bool has_heads(const Config& config) {
  return attends(config) && (config.model.attention != AttentionKind::parameter_free ||
                             config.model.kind == ModelKind::encoder_decoder);
}

bool learns_vectors(const Config& config) {
  return config.task.kind == TaskKind::static_embedding;
}

bool is_split(const Config& config) {
  return config.task.format != DataFormat::files || !config.task.data.empty();
}

bool is_adam(const Config& config) {
  return config.optimizer.kind == OptimizerKind::adam ||
         config.optimizer.kind == OptimizerKind::adamw;
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
constexpr Condition cut_valid = {
    "task.data without task.valid", [](const Config& c) {
      return is_split(c) && (c.task.valid.empty() || c.task.format == DataFormat::coarsewsd);
    }};
constexpr Condition cut_test = {"task.data without task.test", [](const Config& c) {
                                  return is_split(c) && c.task.test.empty() &&
                                         c.task.format != DataFormat::coarsewsd;
                                }};
constexpr Condition static_task = {"task.kind \"static-embedding\"", learns_vectors};
constexpr Condition negatives = {
    "task.kind \"static-embedding\" with task.objective \"skip-gram\" or \"cbow\"",
    [](const Config& c) { return learns_vectors(c) && c.task.objective != Objective::glove; }};
constexpr Condition attention = {"model.kind \"encoder\", \"decoder\" or \"encoder-decoder\"",
                                 attends};
constexpr Condition heads = {"a model whose attention is not parameter-free", has_heads};
constexpr Condition scores = {"a model with attention that is not uniform", [](const Config& c) {
                                return attends(c) && c.model.attention != AttentionKind::uniform;
                              }};
constexpr Condition layers = {
    "another model.kind than \"static\" and \"feed-forward\"", [](const Config& c) {
      return c.model.kind != ModelKind::static_embedding && c.model.kind != ModelKind::fixed_length;
    }};
constexpr Condition hidden = {
    "model.kind \"feed-forward\", or attention that is not parameter-free",
    [](const Config& c) { return has_heads(c) || c.model.kind == ModelKind::fixed_length; }};
constexpr Condition learned_table = {"model.embedding \"learned\"", [](const Config& c) {
                                       return c.model.embedding == EmbeddingKind::learned;
                                     }};
constexpr Condition recurrent = {"model.kind \"recurrent\"", is_recurrent};
constexpr Condition activations = {"another model.kind than \"static\"", [](const Config& c) {
                                     return c.model.kind != ModelKind::static_embedding;
                                   }};
constexpr Condition velocity = {"optimizer.kind \"sgd\" or \"rmsprop\"", [](const Config& c) {
                                  return c.optimizer.kind == OptimizerKind::sgd ||
                                         c.optimizer.kind == OptimizerKind::rmsprop;
                                }};
constexpr Condition sgd = {"optimizer.kind \"sgd\"",
                           [](const Config& c) { return c.optimizer.kind == OptimizerKind::sgd; }};
constexpr Condition adam = {"optimizer.kind \"adam\" or \"adamw\"", is_adam};
constexpr Condition mean_square = {
    "optimizer.kind \"adam\", \"adamw\" or \"rmsprop\"",
    [](const Config& c) { return is_adam(c) || c.optimizer.kind == OptimizerKind::rmsprop; }};
constexpr Condition division = {"another optimizer.kind than \"sgd\"", [](const Config& c) {
                                  return c.optimizer.kind != OptimizerKind::sgd;
                                }};
constexpr Condition falls = {"schedule.kind \"linear\", \"cosine\" or \"one-cycle\"",
                             [](const Config& c) {
                               return c.schedule.kind != ScheduleKind::constant &&
                                      c.schedule.kind != ScheduleKind::inverse_sqrt;
                             }};

/// An option that has an effect on some condition only.
Option only_with(const Condition& needs, Option option) {
  option.needs = needs;
  return option;
}

Options run_options(Config& run) {
  return {
      name_option("name", run.name, "names the run and its folder"),
      option("seed", run.seed, at_least(0), "equal seeds give equal runs"),
  };
}

Options task_options(TaskOptions& task) {
  return {
      option("task.kind", task.kind,
             {{"word-sense", TaskKind::word_sense},
              {"static-embedding", TaskKind::static_embedding},
              {"classify", TaskKind::classify},
              {"coreference", TaskKind::coreference},
              {"translate", TaskKind::translate},
              {"language-model", TaskKind::language_model}},
             "what is learned"),
      option("task.format", task.format,
             {{"files", DataFormat::files},
              {"coarsewsd", DataFormat::coarsewsd},
              {"generated", DataFormat::generated}},
             "where the data comes from"),
      only_with(no_data, path_option("task.train", task.train, "file to learn from")),
      only_with(own_files,
                path_option("task.valid", task.valid, "file that picks the best checkpoint")),
      only_with(own_files, path_option("task.test", task.test, "file that measures the result")),
      only_with(some_data,
                path_option("task.data", task.data,
                            "one file to learn from that is split, or with coarsewsd the "
                            "folder with train.data.txt")),
      only_with(cut_valid,
                option("task.valid_share", task.valid_share, between(0, 0.5),
                       "share of task.data that validates, where task.valid names no file")),
      only_with(
          cut_test,
          option("task.test_share", task.test_share, between(0, 0.5),
                 "share of task.data that measures the result, where task.test names no file")),
      option("task.min_count", task.min_count, at_least(1),
             "words seen less often count as unknown"),
      only_with(static_task, option("task.objective", task.objective,
                                    {{"skip-gram", Objective::skip_gram},
                                     {"cbow", Objective::cbow},
                                     {"glove", Objective::glove}},
                                    "static-embedding: a word foretells its neighbours, they it, "
                                    "or how often they meet")),
      only_with(static_task,
                option("task.window", task.window, between(1, 1000),
                       "static-embedding: words to either side that count as neighbours")),
      only_with(negatives, option("task.negatives", task.negatives, between(1, 1000),
                                  "skip-gram, cbow: random words that each word is told from")),
  };
}

Options model_options(ModelOptions& model) {
  return {
      kind_option("model.kind", model.kind, model_kinds(), "architecture"),
      option("model.width", model.width, between(1, 4096), "numbers in a word's vector"),
      only_with(layers, option("model.layers", model.layers, between(1, 64),
                               "layers on top of each other")),
      only_with(heads, option("model.heads", model.heads, between(1, 256),
                              "attention heads a block; must divide the width")),
      only_with(
          heads,
          option(
              "model.kv_heads", model.kv_heads, between(0, 256),
              "heads of keys and values, each shared by several of queries; 0: as many as heads")),
      only_with(attention, kind_option("model.attention", model.attention, attention_kinds,
                                       "attention weights")),
      only_with(
          scores,
          option(
              "model.scale", model.scale,
              "divide scores by sqrt(width / heads), of parameter-free attention by sqrt(width)")),
      only_with(attention, kind_option("model.position", model.position, position_kinds(),
                                       "positional encoding")),
      only_with(hidden, option("model.feed_forward", model.feed_forward, between(0, 65536),
                               "hidden width of a block's feed-forward part; 0: none")),
      only_with(heads, kind_option("model.norm", model.norm, norm_kinds, "layer normalization")),
      option("model.bias", model.bias, "linear layers and norms add a bias"),
      option("model.tied", model.tied, "the output layer's weight is the embedding table"),
      kind_option("model.embedding", model.embedding, embedding_kinds, "embedding table"),
      path_option("model.embedding_file", model.embedding_file,
                  "word2vec or GloVe text with the vectors to start from"),
      only_with(learned_table, option("model.freeze_embedding", model.freeze_embedding,
                                      "static vectors are not trained")),
      only_with(recurrent, kind_option("model.cell", model.cell, cell_kinds(), "recurrent cell")),
      only_with(recurrent, option("model.bidirectional", model.bidirectional,
                                  "recurrent: read backwards, too, with half of the width each")),
      only_with(activations, option("model.dropout", model.dropout, below_one(),
                                    "share of numbers dropped in training")),
      option("model.max_length", model.max_length, between(1, 65536), "longest sentence in tokens"),
  };
}

Options optimizer_options(OptimizerOptions& optimizer) {
  return {
      kind_option("optimizer.kind", optimizer.kind, optimizer_kinds(), "update rule"),
      option("optimizer.lr", optimizer.lr, above(0), "learning rate"),
      only_with(velocity, option("optimizer.momentum", optimizer.momentum, below_one(),
                                 "sgd and rmsprop: decay of the velocity")),
      only_with(sgd, option("optimizer.nesterov", optimizer.nesterov,
                            "sgd: take the gradient's step ahead of the velocity's")),
      only_with(adam, option("optimizer.beta1", optimizer.beta1, below_one(),
                             "adam: decay of the mean gradient")),
      only_with(mean_square, option("optimizer.beta2", optimizer.beta2, below_one(),
                                    "adam and rmsprop: decay of the mean squared gradient")),
      only_with(adam, option("optimizer.amsgrad", optimizer.amsgrad,
                             "adam and adamw: divide by the largest mean squared gradient so far")),
      only_with(division, option("optimizer.epsilon", optimizer.epsilon, above(0),
                                 "adam, rmsprop and adagrad: keeps the division finite")),
      option("optimizer.weight_decay", optimizer.weight_decay, at_least(0),
             "pull of the weights towards 0; spares biases, norms, embeddings and positions"),
      option("optimizer.require_gradients", optimizer.require_gradients,
             "fail when a parameter receives no gradient"),
  };
}

Options schedule_options(ScheduleOptions& schedule) {
  return {
      kind_option("schedule.kind", schedule.kind, schedule_kinds(),
                  "learning rate after the warm-up"),
      option("schedule.warmup", schedule.warmup, at_least(0),
             "steps over which the learning rate rises"),
      only_with(falls, option("schedule.floor", schedule.floor, below_one(),
                              "share of the learning rate that remains at the end")),
  };
}

Options train_options(TrainOptions& train) {
  return {
      option("train.steps", train.steps, at_least(1), "updates of the parameters"),
      option("train.batch", train.batch, between(1, 65536), "examples a micro-batch"),
      option("train.accumulate", train.accumulate, between(1, 65536),
             "micro-batches whose gradients make a step"),
      option("train.clip", train.clip, at_least(0), "largest norm of the gradient; 0: none"),
      option("train.clip_value", train.clip_value, at_least(0),
             "largest number in the gradient; 0: none"),
      option("train.ema", train.ema, below_one(),
             "decay of the average of the weights that is evaluated and kept; 0: none"),
      option("train.eval_every", train.eval_every, at_least(1), "steps between validations"),
      option("train.checkpoint_every", train.checkpoint_every, at_least(1),
             "steps between checkpoints"),
      option("train.detect_anomaly", train.detect_anomaly,
             "stop at the op that first makes a NaN or infinity and name it; slow"),
      option("train.keep", train.keep, at_least(1), "newest checkpoints that are kept"),
  };
}

/// Whether a word's vector depends on words after it.
bool sees_ahead(const ModelOptions& model) {
  if (model.kind == ModelKind::recurrent) return model.bidirectional;
  return model.kind != ModelKind::decoder && model.kind != ModelKind::static_embedding;
}

}  // namespace

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
    return Conflict{{"task.train", "task.format"}, "task.train must name the file to learn from"};
  if (task.format == DataFormat::generated && task.kind != TaskKind::language_model)
    return Conflict{{"task.format", "task.kind"},
                    "task.format \"generated\" needs task.kind = \"language-model\""};
  if (task.kind == TaskKind::static_embedding && model.kind != ModelKind::static_embedding)
    return Conflict{{"model.kind", "task.kind"},
                    "task.kind \"static-embedding\" needs model.kind = \"static\""};
  if (task.kind == TaskKind::static_embedding && task.objective == Objective::glove && !model.bias)
    return Conflict{{"model.bias", "task.objective"},
                    "task.objective \"glove\" needs model.bias = true"};
  if (model.embedding == EmbeddingKind::one_hot && !model.embedding_file.empty())
    return Conflict{{"model.embedding_file", "model.embedding"},
                    "model.embedding \"one-hot\" takes no model.embedding_file"};
  if ((task.kind == TaskKind::translate) != (model.kind == ModelKind::encoder_decoder))
    return Conflict{{"model.kind", "task.kind"},
                    "task.kind \"translate\" and model.kind \"encoder-decoder\" need each other"};
  if (model.tied && task.kind != TaskKind::language_model && task.kind != TaskKind::translate)
    return Conflict{
        {"model.tied", "task.kind"},
        "model.tied needs a task whose outputs are words: \"language-model\" or \"translate\""};
  if (task.kind == TaskKind::language_model && sees_ahead(model))
    return Conflict{
        {"model.kind", "model.bidirectional", "task.kind"},
        "task.kind \"language-model\" needs a model that does not see the words that it "
        "is to foretell: model.kind = \"decoder\", or \"recurrent\" in one direction"};
  if (task.format == DataFormat::coarsewsd && task.kind != TaskKind::word_sense)
    return Conflict{{"task.format", "task.kind"},
                    "task.format \"coarsewsd\" needs task.kind = \"word-sense\""};
  if (task.format == DataFormat::coarsewsd && task.data.empty())
    return Conflict{{"task.data", "task.format"},
                    "task.data must name a folder when task.format is \"coarsewsd\""};
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
  if (model.kind == ModelKind::recurrent && model.bidirectional && model.width % 2 != 0)
    return Conflict{{"model.bidirectional", "model.width"},
                    fmt::format("model.width must be even when model.bidirectional is true, got {}",
                                model.width)};
  return std::nullopt;
}

}  // namespace qkv
