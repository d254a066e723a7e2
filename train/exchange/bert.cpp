#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/autograd.h"
#include "core/ops.h"
#include "train/exchange/foreign_model.h"
#include "train/tasks/network.h"

// BERT (Devlin et al. 2019) under the names of Hugging Face's transformers.
namespace qkv {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<std::string>;

/// A BERT's vocabulary in the order of ours: its tokens and the line of each.
struct Reordered {
  Tokens tokens;
  std::vector<std::int32_t> lines;
};

/// [PAD] and [UNK] first, as "<pad>" and "<unk>".
Reordered reordered(const Tokens& tokens, const fs::path& file) {
  constexpr std::array<std::pair<const char*, const char*>, 2> reserved = {
      {{"[PAD]", "<pad>"}, {"[UNK]", "<unk>"}}};
  Reordered result;
  std::set<std::int32_t> used;
  for (const auto& [theirs, ours] : reserved) {
    const auto found = std::ranges::find(tokens, theirs);
    require<UserError>(found != tokens.end(), "{}: has no token {}", file.string(), theirs);
    require<UserError>(std::ranges::find(tokens, ours) == tokens.end(),
                       "{}: has a token {}, which is reserved", file.string(), ours);
    result.lines.push_back(static_cast<std::int32_t>(found - tokens.begin()));
    result.tokens.emplace_back(ours);
    used.insert(result.lines.back());
  }
  for (std::int32_t line = 0; line < std::ssize(tokens); ++line) {
    if (used.contains(line)) continue;
    result.lines.push_back(line);
    result.tokens.push_back(tokens[static_cast<std::size_t>(line)]);
  }
  return result;
}

/// Rows of a table [V, D] or elements of a vector [V].
Tensor chosen_rows(const Tensor& table, const std::vector<std::int32_t>& rows) {
  const Tensor matrix = table.rank() == 1 ? reshape(table, {-1, 1}) : table;
  const NoGrad no_grad;
  return reshape(embedding(matrix, Indices(rows, {std::ssize(rows)})), table.shape()).detach();
}

/// The labels of a classifier in the order of their outputs. Without `id2label` they are called as
/// transformers calls them then.
Tokens labels_of(const JsonOptions& options) {
  const nlohmann::json& names = options.find("id2label");
  Tokens labels;
  if (names.is_null()) {
    for (Index i = options.integer("num_labels", 2, 65536, 2); std::ssize(labels) < i;)
      labels.push_back(fmt::format("LABEL_{}", labels.size()));
    return labels;
  }
  options.demand(names.is_object() && names.size() >= 2, "id2label",
                 "must be {\"0\": LABEL, \"1\": LABEL, ...}");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto label = names.find(std::to_string(i));
    options.demand(
        label != names.end() && label->is_string() && !label->get_ref<const std::string&>().empty(),
        "id2label", fmt::format("must have a text for {}", i));
    labels.push_back(label->get<std::string>());
  }
  options.demand(std::set<std::string>(labels.begin(), labels.end()).size() == labels.size(),
                 "id2label", "must not have a label twice");
  return labels;
}

/// Whether a token or name is left out or is `text`, alone or as the content of an object.
bool is_text(const nlohmann::json& value, const char* text) {
  const nlohmann::json& content =
      value.is_object() && value.contains("content") ? value["content"] : value;
  return content.is_null() || content == text;
}

/// Whether the model predicts masked tokens: `BertModel` alone has no output layer.
bool has_masked_head(const Import& import) {
  return import.architecture == Architecture::masked ||
         import.architecture == Architecture::pretraining;
}

void set_bert_options(Import& import) {
  const JsonOptions& options = import.options;
  ModelOptions& model = import.config.model;
  options.require_flag("is_decoder", false);
  options.require_flag("add_cross_attention", false);
  options.choice("position_embedding_type", std::array<std::string_view, 1>{"absolute"});
  model.kind = ModelKind::bert;
  model.width = options.integer("hidden_size", 1, 4096);
  model.layers = options.integer("num_hidden_layers", 1, 64);
  model.heads = options.integer("num_attention_heads", 1, 256);
  model.feed_forward = options.integer("intermediate_size", 1, 65536);
  model.max_length = options.integer("max_position_embeddings", 1, 65536);
  model.norm = NormKind::post;
  require_epsilon(options, "layer_norm_eps", model.kind);
  model.activation = activation_of(options, "hidden_act", ActivationKind::gelu);
  model.dropout = dropout_of(options, "hidden_dropout_prob", {"attention_probs_dropout_prob"});
  const bool classifies = import.architecture == Architecture::classifier;
  if (classifies) {
    options.demand(options.number("classifier_dropout", 0, 1, model.dropout) == model.dropout,
                   "classifier_dropout", fmt::format("must be {}, as elsewhere", model.dropout));
    const nlohmann::json& problem = options.find("problem_type");
    options.demand(problem.is_null() || problem == "single_label_classification", "problem_type",
                   "must be single_label_classification: a text has one label, and the "
                   "probabilities are a softmax over all; neither several labels, each with a "
                   "sigmoid, nor regression is supported");
  }
  import.config.task.kind = classifies ? TaskKind::classify : TaskKind::masked_language_model;
  import.config.head.tied = !classifies;
  if (has_masked_head(import)) options.require_flag("tie_word_embeddings", true);
}

/// Lower case as `tokenizer_config.json` has it. Throws UserError when a text would be cut in
/// another way than by BERT.
bool lower_case_of(const Import& import) {
  const std::string cuts = "cuts words at white space and punctuation";
  require_tokenizer(import, "BertTokenizer", cuts);
  const auto options = JsonOptions::if_there(import.folder / "tokenizer_config.json");
  for (const auto& [key, supported] :
       {std::pair("word_tokenizer_type", "basic"), std::pair("subword_tokenizer_type", "wordpiece"),
        std::pair("unk_token", "[UNK]"), std::pair("pad_token", "[PAD]"),
        std::pair("cls_token", "[CLS]"), std::pair("sep_token", "[SEP]"),
        std::pair("mask_token", "[MASK]")})
    options.demand(is_text(options.find(key), supported), key,
                   fmt::format("must be {} of a tokenizer that {}", supported, cuts));
  options.require_flag("do_basic_tokenize", true);
  options.require_flag("tokenize_chinese_chars", true);
  const nlohmann::json& never_split = options.find("never_split");
  options.demand(never_split.empty(), "never_split", "must be empty here");
  const bool lower = options.flag("do_lower_case", true);
  options.require_flag("strip_accents", lower);
  return lower;
}

/// The first two token types; where there is one, the second is zeros. No text uses more than one.
Tensor token_types(const Import& import, TensorSource& source) {
  const Index types = import.options.integer("type_vocab_size", 1, 64, 2),
              width = import.config.model.width;
  const Tensor table = source.take("embeddings.token_type_embeddings.weight", {types, width});
  const NoGrad no_grad;
  return slice(concatenate({table, Tensor::zeros({1, width})}, 0), 0, 0, 2).detach();
}

/// A layer that the folder has no weights for starts as in a new run.
template <class Layer>
void add_new(Import& import, const std::string& path, Layer layer, Random& random) {
  initialise(layer, random);
  for (const auto& [name, value] : state_of(layer))
    import.parameter(fmt::format("{}.{}", path, name)) = value;
}

void take_bert_layer(Import& import, TensorSource& source, Index layer) {
  const Index width = import.config.model.width, hidden = import.config.model.feed_forward;
  const std::string block = fmt::format("encoder.layers.{}.", layer),
                    theirs = fmt::format("encoder.layer.{}.", layer);
  for (const auto& [path, name] : {std::pair("attention.w_q", "attention.self.query"),
                                   std::pair("attention.w_k", "attention.self.key"),
                                   std::pair("attention.w_v", "attention.self.value"),
                                   std::pair("attention.w_o", "attention.output.dense")})
    take_layer(import, source, block + path, theirs + name, {width, width});
  take_layer(import, source, block + "norm_1", theirs + "attention.output.LayerNorm", {width});
  take_layer(import, source, block + "feed_forward.w_1", theirs + "intermediate.dense",
             {hidden, width});
  take_layer(import, source, block + "feed_forward.w_2", theirs + "output.dense", {width, hidden});
  take_layer(import, source, block + "norm_2", theirs + "output.LayerNorm", {width});
}

bool is_unused_of_bert(std::string_view name) {
  return name.starts_with("cls.seq_relationship.") || name == "embeddings.position_ids";
}

void take_embeddings(Import& import, TensorSource& source, const Tensor& table,
                     const Reordered& vocabulary) {
  const ModelOptions& model = import.config.model;
  import.parameter("embedding.weight") = chosen_rows(table, vocabulary.lines);
  import.parameter("positions.weight") =
      source.take("embeddings.position_embeddings.weight", {model.max_length, model.width});
  import.parameter("token_types.weight") = token_types(import, source);
  take_layer(import, source, "input_norm", "embeddings.LayerNorm", {model.width});
}

/// The output layer that predicts masked tokens, tied to the table of embeddings.
void take_masked_head(Import& import, TensorSource& source, const Tensor& table,
                      const Reordered& vocabulary) {
  const std::string output = "cls.predictions.";
  const Index width = table.dim(1);
  take_layer(import, source, "output_transform.linear", output + "transform.dense", {width, width});
  take_layer(import, source, "output_transform.norm", output + "transform.LayerNorm", {width});
  const Tensor bias = source.take(output + "bias", {table.dim(0)});
  import.parameter("output_bias") = chosen_rows(bias, vocabulary.lines);
  source.take_copy(output + "decoder.weight", table);
  source.take_copy(output + "decoder.bias", bias);
}

/// Pooler and output layer; new ones where the architecture has none.
void take_heads(Import& import, TensorSource& source, const Tensor& table,
                const Reordered& vocabulary) {
  const ModelOptions& model = import.config.model;
  const bool classifies = import.architecture == Architecture::classifier;
  Random random(import.config.seed, Purpose::initialisation);
  if (classifies || source.has("pooler.dense.weight"))
    take_layer(import, source, "pooler", "pooler.dense", {model.width, model.width});
  else
    add_new(import, "pooler", Linear(model.width, model.width), random);
  if (classifies) {
    const Tokens labels = labels_of(import.options);
    import.checkpoint.vocabulary["labels"] = labels;
    take_layer(import, source, "head", "classifier", {std::ssize(labels), model.width});
  } else if (has_masked_head(import)) {
    take_masked_head(import, source, table, vocabulary);
  } else {
    add_new(import, "output_transform", OutputTransform(model), random);
    import.parameter("output_bias") = Tensor::zeros({table.dim(0)});
  }
}

}  // namespace

Tokens read_bert(Import& import) {
  set_bert_options(import);
  import.config.task.tokenizer = TokenizerKind::word_piece;
  import.config.task.lower_case = lower_case_of(import);
  TensorSource source(weights_file(import), "bert.");
  const std::string name = "embeddings.word_embeddings.weight";
  const fs::path vocab = tokenizer_file(import, "vocab.txt");
  Tokens tokens = read_vocab_txt(vocab);
  complete_vocabulary(import, source, name, vocab, tokens);
  const Reordered vocabulary = reordered(tokens, vocab);
  import.checkpoint.vocabulary["tokens"] = vocabulary.tokens;

  const ModelOptions& model = import.config.model;
  const Tensor table = source.take(name, {std::ssize(tokens), model.width});
  take_embeddings(import, source, table, vocabulary);
  for (Index layer = 0; layer < model.layers; ++layer) take_bert_layer(import, source, layer);
  take_heads(import, source, table, vocabulary);
  return source.left(is_unused_of_bert);
}

}  // namespace qkv
