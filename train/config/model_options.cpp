#include "layers/model.h"
#include "layers/positions.h"
#include "layers/recurrent.h"
#include "train/config/option_groups.h"
#include "train/config/task_kinds.h"

namespace qkv {
namespace {

bool attends(const Config& config) {
  return is_transformer(config.model.kind);
}

/// The decoder of an encoder-decoder is learned where its encoder is parameter-free.
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

bool is_recurrent(const Config& config) {
  return config.model.kind == ModelKind::recurrent;
}

/// Whether `OutputTransform` computes the logits.
bool transforms(const Config& config) {
  return config.model.kind == ModelKind::bert && config.head.tied;
}

constexpr Condition attending = {
    "model.kind \"encoder\", \"bert\", \"decoder\" or \"encoder-decoder\"", attends};
constexpr Condition heads = {"a model whose attention is not parameter-free", has_heads};
/// Heads of equal weights are one, but a width that the default does not divide needs another
/// number.
constexpr Condition unequal_heads = {
    "learned attention, or uniform with model.kv_heads, model.dropout or model.init "
    "\"naive-bayes\"",
    [](const Config& c) {
      return has_heads(c) && (c.model.attention != AttentionKind::uniform || c.model.kv_heads > 0 ||
                              c.model.dropout > 0 || c.init == InitKind::naive_bayes ||
                              c.model.width % ModelOptions().heads != 0);
    }};
constexpr Condition scores = {"a model with attention that is not uniform", [](const Config& c) {
                                return attends(c) && c.model.attention != AttentionKind::uniform;
                              }};
constexpr Condition relative = {
    "model.position \"relative\" or \"windows\" with learned attention", [](const Config& c) {
      const PositionKind position = c.model.position;
      return (position == PositionKind::relative || position == PositionKind::windows) &&
             positions_attend(c);
    }};
constexpr Condition layers = {
    "another model.kind than \"static\" and \"feed-forward\"", [](const Config& c) {
      return c.model.kind != ModelKind::static_embedding && c.model.kind != ModelKind::fixed_length;
    }};
constexpr Condition hidden = {
    "model.kind \"feed-forward\", or attention that is not parameter-free",
    [](const Config& c) { return has_heads(c) || c.model.kind == ModelKind::fixed_length; }};
constexpr Condition activated = {
    "a feed-forward sub-layer, model.kind \"feed-forward\", or \"bert\" with model.tied",
    [](const Config& c) { return (hidden.holds(c) && c.model.feed_forward > 0) || transforms(c); }};
/// Recurrent and convolutional layers always have biases, a BERT has norms and a pooler.
constexpr Condition biased = {
    "a bias to leave out, which skip-gram and CBOW do not use, nor static, recurrent and "
    "convolutional models whose output is tied",
    [](const Config& c) {
      return predicts_with_bias(c) &&
             (!c.head.tied || c.model.kind == ModelKind::bert || hidden.holds(c));
    }};
/// A decoder starts as GPT-2.
constexpr Condition drawn_table = {
    "another model.kind than \"decoder\", and model.embedding \"learned\", model.position "
    "\"learned\" or model.kind \"bert\"",
    [](const Config& c) {
      return c.model.kind != ModelKind::decoder &&
             (c.model.embedding == EmbeddingKind::learned || c.model.kind == ModelKind::bert ||
              (attends(c) && c.model.position == PositionKind::learned));
    }};
constexpr Condition recurrent = {"model.kind \"recurrent\"", is_recurrent};
constexpr Condition activations = {"another model.kind than \"static\"", [](const Config& c) {
                                     return c.model.kind != ModelKind::static_embedding;
                                   }};

std::optional<Conflict> kind_conflict(const Config& config) {
  const ModelOptions& model = config.model;
  if (model.kind == ModelKind::fixed_length && model.feed_forward == 0)
    return Conflict{{"model.feed_forward", "model.kind"},
                    "model.feed_forward must be > 0 when model.kind is \"feed-forward\""};
  if (model.kind == ModelKind::convolution && model.width < 3)
    return Conflict{{"model.width", "model.kind"},
                    fmt::format("model.width must be at least 3 for the kernels of a convolution, "
                                "got {}",
                                model.width)};
  if (is_recurrent(config) && model.bidirectional && model.width % 2 != 0)
    return Conflict{{"model.bidirectional", "model.width"},
                    fmt::format("model.width must be even when model.bidirectional is true, got {}",
                                model.width)};
  return std::nullopt;
}

std::optional<Conflict> heads_conflict(const Config& config) {
  const ModelOptions& model = config.model;
  if (!has_heads(config)) return std::nullopt;
  if (model.width % model.heads != 0)
    return Conflict{
        {"model.heads", "model.width"},
        fmt::format("model.heads must divide model.width ({}), got {}", model.width, model.heads)};
  if (model.kv_heads && model.heads % model.kv_heads != 0)
    return Conflict{{"model.kv_heads", "model.heads"},
                    fmt::format("model.kv_heads must divide model.heads ({}), got {}", model.heads,
                                model.kv_heads)};
  return std::nullopt;
}

std::optional<Conflict> rotation_conflict(const Config& config) {
  const ModelOptions& model = config.model;
  const Index head_width = has_heads(config) ? model.width / model.heads : model.width;
  if (!attends(config) || model.position != PositionKind::rotary || head_width % 2 == 0)
    return std::nullopt;
  return Conflict{{"model.position", "model.width", "model.heads"},
                  fmt::format("model.position \"rotary\" rotates pairs: the width of a head must "
                              "be even, got {}",
                              head_width)};
}

/// Naive Bayes is linear in the embeddings, without a norm or feed-forward network on the way.
bool is_linear_in_embeddings(const Config& config) {
  const ModelOptions& model = config.model;
  const bool one_layer = model.kind == ModelKind::encoder && model.layers == 1 &&
                         model.feed_forward == 0 && model.norm == NormKind::none &&
                         model.kv_heads == 0 && has_heads(config) &&
                         !row_of(position_kinds(), model.position).input;
  return row_of(task_kinds(), config.task.kind).traits.has_one_label &&
         model.embedding_file.empty() && model.embedding == EmbeddingKind::learned &&
         (model.kind == ModelKind::static_embedding || one_layer);
}

std::optional<Conflict> init_conflict(const Config& config) {
  if (config.init != InitKind::naive_bayes || is_linear_in_embeddings(config)) return std::nullopt;
  return Conflict{
      {"model.init", "model.kind"},
      "model.init \"naive-bayes\" needs a task with one label an example, learned embeddings "
      "without "
      "a file, and model.kind \"static\", or \"encoder\" with model.layers = 1, model.norm = "
      "\"none\", model.feed_forward = 0, model.kv_heads = 0, attention with parameters and no "
      "positions in the embeddings"};
}

std::optional<Conflict> tying_conflict(const Config& config) {
  if (!config.head.tied || row_of(task_kinds(), config.task.kind).traits.predicts_words)
    return std::nullopt;
  return Conflict{{"model.tied", "task.kind"},
                  fmt::format("model.tied needs a task whose outputs are words: {}",
                              tasks_with(&TaskTraits::predicts_words))};
}

/// Masked language models see both sides of a word.
std::optional<Conflict> direction_conflict(const Config& config) {
  const bool one_side = config.model.kind == ModelKind::decoder ||
                        (is_recurrent(config) && !config.model.bidirectional);
  if (config.task.kind != TaskKind::masked_language_model || !one_side) return std::nullopt;
  return Conflict{{"model.kind", "model.bidirectional", "task.kind"},
                  "task.kind \"masked-language-model\" predicts a token from both sides, of which "
                  "model.kind = \"decoder\", and \"recurrent\" without model.bidirectional, see "
                  "one alone"};
}

std::optional<Conflict> position_conflict(const Config& config) {
  const PositionRow& position = row_of(position_kinds(), config.model.position);
  if (!attends(config) || !position.attention || positions_attend(config)) return std::nullopt;
  return Conflict{{"model.position", "model.attention"},
                  fmt::format("model.position \"{}\" has no effect on model.attention \"{}\"; "
                              "choose another, as \"none\"",
                              position.name, row_of(attention_kinds, config.model.attention).name)};
}

/// A kind of table, or the file of the vectors that a learned one starts from.
Option embedding_option(ModelOptions& model) {
  Option result = kind_option("model.embedding", model.embedding, embedding_kinds,
                              "embedding table, or a word2vec or GloVe text file of its start");
  result.type += " | path";
  result.path = &model.embedding_file;
  const Option file = path_option("model.embedding", model.embedding_file, "");
  result.assign = [&model, file, kind = result](const Value& value) -> std::optional<std::string> {
    if (!kind.assign(value)) {
      model.embedding_file.clear();
      return std::nullopt;
    }
    auto error = file.assign(value);
    if (!error) model.embedding = EmbeddingKind::learned;
    return error;
  };
  result.print = [&model, file, kind = result] {
    return model.embedding_file.empty() ? kind.print() : file.print();
  };
  return result;
}

}  // namespace

Options model_options(Config& config) {
  ModelOptions& model = config.model;
  return {
      checked_by(kind_conflict, checked_at_start_by(direction_conflict,
                                                    kind_option("model.kind", model.kind,
                                                                model_kinds(), "architecture"))),
      option("model.width", model.width, between(1, 4096), "embedding dimension (d_model)"),
      only_with(layers,
                option("model.layers", model.layers, between(1, 64), "layers in the stack")),
      only_with(unequal_heads,
                checked_by(heads_conflict,
                           option("model.heads", model.heads, between(1, 256),
                                  "attention heads of a layer; must divide model.width"))),
      only_with(heads, option("model.kv_heads", model.kv_heads, between(0, 256),
                              "key and value heads, each shared by several query heads "
                              "(grouped-query attention); 0: model.heads")),
      only_with(attending, kind_option("model.attention", model.attention, attention_kinds,
                                       "attention weights")),
      only_with(scores, option("model.scale", model.scale,
                               "division of scores by sqrt(width / heads), of parameter-free "
                               "attention by sqrt(width)")),
      only_with(attending, checked_at_start_by(
                               position_conflict,
                               checked_by(rotation_conflict,
                                          kind_option("model.position", model.position,
                                                      position_kinds(), "positional encoding")))),
      only_with(relative, option("model.max_distance", model.max_distance, between(1, 1024),
                                 "distance in tokens from which on relative positions are equal")),
      only_with(hidden, option("model.feed_forward", model.feed_forward, between(0, 65536),
                               "hidden dimension of the feed-forward sub-layer; 0: none")),
      only_with(
          activated,
          kind_option(
              "model.activation", model.activation, activation_kinds,
              "activation of the feed-forward sub-layer, and before the tied output of \"bert\"")),
      only_with(heads, kind_option("model.norm", model.norm, norm_kinds, "layer normalization")),
      only_with(biased, option("model.bias", model.bias, "biases of linear layers and norms")),
      checked_by(tying_conflict,
                 option("model.tied", config.head.tied,
                        "weight tying: the embedding table as the output layer's weight")),
      embedding_option(model),
      only_with(drawn_table,
                option("model.embedding_std", model.embedding_std, at_least(0),
                       "initial standard deviation of the embeddings; of a decoder it is 0.02")),
      checked_by(init_conflict,
                 kind_option("model.init", config.init, init_kinds, "initial parameters")),
      only_with(recurrent, kind_option("model.cell", model.cell, cell_kinds(), "recurrent cell")),
      only_with(recurrent, option("model.bidirectional", model.bidirectional,
                                  "recurrent network in both directions, half of the width each")),
      only_with(activations,
                option("model.dropout", model.dropout, below_one(), "dropout probability")),
      option("model.max_length", model.max_length, between(1, 65536),
             "maximum sequence length in tokens"),
  };
}

}  // namespace qkv
