#include "train/huggingface.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/autograd.h"
#include "core/ops.h"
#include "datasets/text.h"
#include "train/config/config.h"
#include "train/exchange.h"
#include "train/storage/durable_file.h"
#include "train/storage/safetensors.h"
#include "train/storage/strict_json.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<std::string>;
using Tensors = std::map<std::string, Tensor>;

constexpr std::uint64_t longest_config = std::uint64_t{1} << 20,
                        longest_vocabulary = std::uint64_t{1} << 26;
constexpr std::size_t most_tokens = std::size_t{1} << 22;

std::string text_of(const fs::path& file, std::uint64_t longest) {
  const auto bytes = read_file(file, longest);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  require<UserError>(is_utf8(text), "{}: is not UTF-8", file.string());
  return text;
}

nlohmann::json json_of(const fs::path& file, std::uint64_t longest) {
  constexpr int deepest = 16;
  const std::string text = text_of(file, longest);
  try {
    return strict_json(text, deepest);
  } catch (const FileError& error) {
    throw UserError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

/// Calls `use` with each line of a file and its number from 1, without its end.
void for_each_line(const fs::path& file,
                   const std::function<void(std::string_view, std::size_t)>& use) {
  const std::string text = text_of(file, longest_vocabulary);
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    use(line, ++number);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

/// A JSON file of options, each of which is checked when it is asked for.
class JsonOptions {
 public:
  explicit JsonOptions(fs::path file)
      : file_(std::move(file)), json_(json_of(file_, longest_config)) {}

  const fs::path& file() const { return file_; }
  /// Null where it is left out.
  const nlohmann::json& find(const std::string& key) const {
    static const nlohmann::json null;
    const auto found = json_.find(key);
    return found == json_.end() ? null : *found;
  }
  Index integer(const std::string& key, Index low, Index high,
                std::optional<Index> usual = {}) const {
    const nlohmann::json& value = find(key);
    if (value.is_null() && usual) return *usual;
    const bool fits = value.is_number_unsigned() &&
                      value.get<std::uint64_t>() <= static_cast<std::uint64_t>(high) &&
                      value.get<Index>() >= low;
    demand(fits, key, fmt::format("must be an integer from {} to {}", low, high));
    return value.get<Index>();
  }
  double number(const std::string& key, double low, double below, double usual) const {
    const nlohmann::json& value = find(key);
    if (value.is_null()) return usual;
    demand(value.is_number() && value.get<double>() >= low && value.get<double>() < below, key,
           fmt::format("must be a number from {} to below {}", low, below));
    return value.get<double>();
  }
  bool flag(const std::string& key, bool usual) const {
    const nlohmann::json& value = find(key);
    demand(value.is_null() || value.is_boolean(), key, "must be true or false");
    return value.is_null() ? usual : value.get<bool>();
  }
  /// Throws unless a flag has the one value that is supported.
  void require_flag(const std::string& key, bool supported) const {
    demand(flag(key, supported) == supported, key, fmt::format("must be {} here", supported));
  }
  /// One of some names, the first where it is left out.
  template <std::size_t n>
  std::size_t choice(const std::string& key, const std::array<std::string_view, n>& names) const {
    const nlohmann::json& value = find(key);
    if (value.is_null()) return 0;
    const auto found = value.is_string()
                           ? std::ranges::find(names, value.get_ref<const std::string&>())
                           : names.end();
    demand(found != names.end(), key, fmt::format("must be one of {}", fmt::join(names, ", ")));
    return static_cast<std::size_t>(found - names.begin());
  }
  void demand(bool holds, const std::string& key, const std::string& what) const {
    require<UserError>(holds, "{}: {} {}, got {}", file_.string(), key, what, shown(find(key)));
  }

 private:
  static std::string shown(const nlohmann::json& value) {
    constexpr std::size_t most = 80;
    const std::string text = value.dump(-1, ' ', true);
    return value.is_null() ? "none" : text.size() > most ? text.substr(0, most) + "..." : text;
  }

  fs::path file_;
  nlohmann::json json_;
};

enum class Architecture { bert, masked, pretraining, classifier, gpt2, gpt2_head };
constexpr std::array<std::string_view, 6> architectures = {
    "BertModel", "BertForMaskedLM", "BertForPreTraining", "BertForSequenceClassification",
    "GPT2Model", "GPT2LMHeadModel"};
constexpr std::array<std::string_view, 2> model_types = {"bert", "gpt2"};
constexpr std::array<std::string_view, 4> activations = {"gelu", "gelu_new", "gelu_pytorch_tanh",
                                                         "gelu_fast"};

Architecture architecture_of(const JsonOptions& options) {
  const nlohmann::json& list = options.find("architectures");
  const bool named = list.is_array() && list.size() == 1 && list[0].is_string();
  const auto found = named ? std::ranges::find(architectures, list[0].get_ref<const std::string&>())
                           : architectures.end();
  options.demand(found != architectures.end(), "architectures",
                 fmt::format("must be a list of one of {}", fmt::join(architectures, ", ")));
  const auto architecture = static_cast<Architecture>(found - architectures.begin());
  options.demand(options.find("model_type").is_string(), "model_type", "must be bert or gpt2");
  const bool is_gpt2 = options.choice("model_type", model_types) == 1;
  options.demand(is_gpt2 == (architecture >= Architecture::gpt2), "model_type",
                 fmt::format("must be that of {}", *found));
  return architecture;
}

ActivationKind activation_of(const JsonOptions& options, const std::string& key,
                             ActivationKind usual) {
  if (options.find(key).is_null()) return usual;
  return options.choice(key, activations) == 0 ? ActivationKind::gelu : ActivationKind::gelu_tanh;
}

/// The one dropout probability of a model.
double dropout_of(const JsonOptions& options, const std::string& key,
                  std::initializer_list<std::string> others) {
  const double probability = options.number(key, 0, 1, 0.1);
  for (const std::string& other : others)
    options.demand(options.number(other, 0, 1, 0.1) == probability, other,
                   fmt::format("must be {} = {}, since a model has one dropout probability; it has "
                               "an effect in training alone",
                               key, probability));
  return probability;
}

/// The tensors of a model by name, each of which is taken once.
class TensorSource {
 public:
  /// `prefix` begins the names where the model has an output layer.
  TensorSource(fs::path file, std::string_view prefix) : file_(std::move(file)) {
    for (auto& [name, tensor] : read_safetensors(file_).tensors) {
      std::string plain = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
      // As files that were converted from TensorFlow call the parameters of norms.
      for (const auto& [old_end, end] :
           {std::pair(".gamma", ".weight"), std::pair(".beta", ".bias")})
        if (plain.ends_with(old_end))
          plain.replace(plain.size() - std::string_view(old_end).size(), plain.npos, end);
      require<UserError>(tensors_.emplace(plain, tensor).second, "{}: has {} under two names",
                         file_.string(), plain);
    }
  }

  bool has(const std::string& name) const { return tensors_.contains(name); }
  Tensor take(const std::string& name, const Shape& shape) {
    const auto found = tensors_.extract(name);
    require<UserError>(!found.empty(), "{}: has no tensor {} {}, which config.json describes",
                       file_.string(), name, shape);
    require<UserError>(found.mapped().shape() == shape,
                       "{}: {} has the shape {}; config.json describes {}", file_.string(), name,
                       found.mapped().shape(), shape);
    return found.mapped().to(DType::float32);
  }
  /// Takes another copy of what was taken. Throws unless it is equal.
  void take_copy(const std::string& name, const Tensor& of) {
    if (!has(name)) return;
    require<UserError>(take(name, of.shape()).values() == of.values(),
                       "{}: {} differs from the weights that it is tied to; such a model is not "
                       "supported",
                       file_.string(), name);
  }
  /// What is left. Throws for a name that `may_be` does not expect.
  Tokens left(bool (*may_be)(std::string_view)) const {
    Tokens names;
    for (const auto& [name, tensor] : tensors_) {
      require<UserError>(may_be(name), "{}: {} is no tensor of this architecture", file_.string(),
                         name);
      names.push_back(name);
    }
    return names;
  }

 private:
  fs::path file_;
  Tensors tensors_;
};

Tensor transposed(const Tensor& x) {
  return permute(x, {1, 0}).detach();
}

/// What a BERT's vocabulary becomes: its tokens and the line of each.
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

/// The labels of a classifier in the order of their outputs.
Tokens labels_of(const JsonOptions& options) {
  const nlohmann::json& names = options.find("id2label");
  options.demand(names.is_object() && names.size() >= 2, "id2label",
                 "must be {\"0\": LABEL, \"1\": LABEL, ...}");
  Tokens labels;
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

/// A model as it is put together.
struct Import {
  fs::path folder;
  JsonOptions options;
  Architecture architecture;
  Config config = {};
  Checkpoint checkpoint = {};

  Tensor& parameter(const std::string& path) { return checkpoint.model[path]; }
};

Index width_of(const Import& import) {
  return import.config.model.width;
}

void set_bert_options(Import& import) {
  const JsonOptions& options = import.options;
  ModelOptions& model = import.config.model;
  options.require_flag("is_decoder", false);
  options.require_flag("add_cross_attention", false);
  options.choice("position_embedding_type", std::array<std::string_view, 1>{"absolute"});
  model.kind = ModelKind::encoder;
  model.width = options.integer("hidden_size", 1, 4096);
  model.layers = options.integer("num_hidden_layers", 1, 64);
  model.heads = options.integer("num_attention_heads", 1, 256);
  model.feed_forward = options.integer("intermediate_size", 1, 65536);
  model.max_length = options.integer("max_position_embeddings", 1, 65536);
  model.token_types = options.integer("type_vocab_size", 1, 64, 2);
  model.norm = NormKind::post;
  model.norm_epsilon = options.number("layer_norm_eps", 1e-30, 1, 1e-12);
  model.embedding_norm = true;
  model.activation = activation_of(options, "hidden_act", ActivationKind::gelu);
  model.dropout = dropout_of(options, "hidden_dropout_prob", {"attention_probs_dropout_prob"});
  const bool classifies = import.architecture == Architecture::classifier;
  import.config.task.kind = classifies ? TaskKind::classify : TaskKind::masked_language_model;
  model.tied = !classifies;
  if (import.architecture == Architecture::masked ||
      import.architecture == Architecture::pretraining) {
    model.output = OutputKind::transformed;
    options.require_flag("tie_word_embeddings", true);
  }
}

/// Lower case as `tokenizer_config.json` has it.
bool lower_case_of(const fs::path& folder) {
  const fs::path file = folder / "tokenizer_config.json";
  if (!fs::exists(file)) return true;
  const JsonOptions options(file);
  const bool lower = options.flag("do_lower_case", true);
  options.require_flag("strip_accents", lower);
  options.require_flag("tokenize_chinese_chars", true);
  return lower;
}

void take_linear(Import& import, TensorSource& source, const std::string& path,
                 const std::string& name, const Shape& shape) {
  import.parameter(path + ".weight") = source.take(name + ".weight", shape);
  import.parameter(path + ".bias") = source.take(name + ".bias", {shape[0]});
}

void take_norm(Import& import, TensorSource& source, const std::string& path,
               const std::string& name) {
  const Index width = width_of(import);
  import.parameter(path + ".weight") = source.take(name + ".weight", {width});
  import.parameter(path + ".bias") = source.take(name + ".bias", {width});
}

void take_bert_layer(Import& import, TensorSource& source, Index layer) {
  const Index width = width_of(import), hidden = import.config.model.feed_forward;
  const std::string block = fmt::format("encoder.layers.{}.", layer),
                    theirs = fmt::format("encoder.layer.{}.", layer);
  for (const auto& [path, name] : {std::pair("attention.w_q", "attention.self.query"),
                                   std::pair("attention.w_k", "attention.self.key"),
                                   std::pair("attention.w_v", "attention.self.value"),
                                   std::pair("attention.w_o", "attention.output.dense")})
    take_linear(import, source, block + path, theirs + name, {width, width});
  take_norm(import, source, block + "norm_1", theirs + "attention.output.LayerNorm");
  take_linear(import, source, block + "feed_forward.w_1", theirs + "intermediate.dense",
              {hidden, width});
  take_linear(import, source, block + "feed_forward.w_2", theirs + "output.dense", {width, hidden});
  take_norm(import, source, block + "norm_2", theirs + "output.LayerNorm");
}

bool is_unused_of_bert(std::string_view name) {
  return name.starts_with("cls.seq_relationship.") || name == "embeddings.position_ids";
}

Tokens read_bert(Import& import) {
  set_bert_options(import);
  ModelOptions& model = import.config.model;
  const fs::path vocab = import.folder / "vocab.txt";
  const Reordered vocabulary = reordered(read_vocab_txt(vocab), vocab);
  const Index width = model.width, rows = std::ssize(vocabulary.tokens);
  import.config.task.tokenizer = TokenizerKind::word_piece;
  import.config.task.lower_case = lower_case_of(import.folder);
  import.checkpoint.vocabulary["tokens"] = vocabulary.tokens;

  TensorSource source(import.folder / "model.safetensors", "bert.");
  const Tensor table = source.take("embeddings.word_embeddings.weight", {rows, width});
  import.parameter("embedding.weight") = chosen_rows(table, vocabulary.lines);
  import.parameter("positions.weight") =
      source.take("embeddings.position_embeddings.weight", {model.max_length, width});
  import.parameter("token_types.weight") =
      source.take("embeddings.token_type_embeddings.weight", {model.token_types, width});
  take_norm(import, source, "input_norm", "embeddings.LayerNorm");
  for (Index layer = 0; layer < model.layers; ++layer) take_bert_layer(import, source, layer);
  if (source.has("pooler.dense.weight") || import.architecture == Architecture::classifier) {
    model.pooling = PoolingKind::first;
    take_linear(import, source, "pooler", "pooler.dense", {width, width});
  }
  if (import.architecture == Architecture::classifier) {
    import.checkpoint.vocabulary["labels"] = labels_of(import.options);
    take_linear(import, source, "head", "classifier",
                {std::ssize(import.checkpoint.vocabulary["labels"]), width});
  }
  if (model.output == OutputKind::transformed) {
    const std::string name = "cls.predictions.";
    take_linear(import, source, "output_transform.linear", name + "transform.dense",
                {width, width});
    take_norm(import, source, "output_transform.norm", name + "transform.LayerNorm");
    const Tensor bias = source.take(name + "bias", {rows});
    import.parameter("output_bias") = chosen_rows(bias, vocabulary.lines);
    source.take_copy(name + "decoder.weight", table);
    source.take_copy(name + "decoder.bias", bias);
  }
  return source.left(is_unused_of_bert);
}

void set_gpt2_options(Import& import) {
  const JsonOptions& options = import.options;
  ModelOptions& model = import.config.model;
  options.require_flag("add_cross_attention", false);
  options.require_flag("scale_attn_by_inverse_layer_idx", false);
  options.require_flag("tie_word_embeddings", true);
  model.kind = ModelKind::decoder;
  model.width = options.integer("n_embd", 1, 4096);
  model.layers = options.integer("n_layer", 1, 64);
  model.heads = options.integer("n_head", 1, 256);
  model.feed_forward = options.integer("n_inner", 1, 65536, 4 * model.width);
  model.max_length = options.integer("n_positions", 1, 65536);
  model.scale = options.flag("scale_attn_weights", true);
  model.norm_epsilon = options.number("layer_norm_epsilon", 1e-30, 1, 1e-5);
  model.activation = activation_of(options, "activation_function", ActivationKind::gelu_tanh);
  model.dropout = dropout_of(options, "resid_pdrop", {"embd_pdrop", "attn_pdrop"});
  model.tied = true;
  import.config.task.kind = TaskKind::language_model;
}

/// Convolutions of one position, whose weights are [in, out].
void take_conv1d(Import& import, TensorSource& source, const std::string& path,
                 const std::string& name, Index in, Index out) {
  import.parameter(path + ".weight") = transposed(source.take(name + ".weight", {in, out}));
  import.parameter(path + ".bias") = source.take(name + ".bias", {out});
}

void take_gpt2_layer(Import& import, TensorSource& source, Index layer) {
  const Index width = width_of(import), hidden = import.config.model.feed_forward;
  const std::string block = fmt::format("decoder.layers.{}.", layer),
                    theirs = fmt::format("h.{}.", layer);
  take_norm(import, source, block + "norm_1", theirs + "ln_1");
  const auto weights =
      split(transposed(source.take(theirs + "attn.c_attn.weight", {width, 3 * width})), 0, 3);
  const auto biases = split(source.take(theirs + "attn.c_attn.bias", {3 * width}), 0, 3);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string path = fmt::format("{}attention.w_{}", block, "qkv"[i]);
    import.parameter(path + ".weight") = weights[i].detach();
    import.parameter(path + ".bias") = biases[i].detach();
  }
  take_conv1d(import, source, block + "attention.w_o", theirs + "attn.c_proj", width, width);
  take_norm(import, source, block + "norm_2", theirs + "ln_2");
  take_conv1d(import, source, block + "feed_forward.w_1", theirs + "mlp.c_fc", width, hidden);
  take_conv1d(import, source, block + "feed_forward.w_2", theirs + "mlp.c_proj", hidden, width);
}

/// The masks of old files.
bool is_unused_of_gpt2(std::string_view name) {
  return name.starts_with("h.") &&
         (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
}

Tokens read_gpt2(Import& import) {
  set_gpt2_options(import);
  const ModelOptions& model = import.config.model;
  const Tokens tokens = read_vocab_json(import.folder / "vocab.json");
  import.config.task.tokenizer = TokenizerKind::byte_level;
  import.config.task.lower_case = false;
  import.checkpoint.vocabulary = {{"tokens", tokens},
                                  { "merges",
                                    read_merges(import.folder / "merges.txt") }};
  if (const fs::path file = import.folder / "tokenizer_config.json"; fs::exists(file))
    JsonOptions(file).require_flag("add_prefix_space", false);

  TensorSource source(import.folder / "model.safetensors", "transformer.");
  const Tensor table = source.take("wte.weight", {std::ssize(tokens), model.width});
  import.parameter("embedding.weight") = table;
  import.parameter("positions.weight") = source.take("wpe.weight", {model.max_length, model.width});
  for (Index layer = 0; layer < model.layers; ++layer) take_gpt2_layer(import, source, layer);
  take_norm(import, source, "decoder.norm", "ln_f");
  source.take_copy("lm_head.weight", table);
  return source.left(is_unused_of_gpt2);
}

/// The folder's name, where a run can have it.
std::string name_of(const fs::path& folder) {
  const std::string name = fs::absolute(folder / "").lexically_normal().parent_path().filename();
  return name.empty() || !is_utf8(name) ? "imported" : name;
}

}  // namespace

Tokens read_vocab_txt(const fs::path& file) {
  Tokens tokens;
  std::set<std::string> known;
  for_each_line(file, [&](std::string_view line, std::size_t number) {
    require<UserError>(!line.empty() && line.find('\0') == line.npos,
                       "{}:{}: must be a token, got {}", file.string(), number,
                       line.empty() ? "an empty line" : "a zero byte");
    require<UserError>(known.emplace(line).second, "{}:{}: \"{}\" occurs twice", file.string(),
                       number, line);
    tokens.emplace_back(line);
  });
  require<UserError>(tokens.size() <= most_tokens, "{}: has {} tokens, more than {}", file.string(),
                     tokens.size(), most_tokens);
  return tokens;
}

Tokens read_vocab_json(const fs::path& file) {
  const nlohmann::json json = json_of(file, longest_vocabulary);
  require<UserError>(json.size() <= most_tokens, "{}: has {} tokens, more than {}", file.string(),
                     json.size(), most_tokens);
  Tokens tokens(json.size());
  for (const auto& [token, id] : json.items()) {
    require<UserError>(!token.empty() && token.find('\0') == token.npos,
                       "{}: a token is empty or has a zero byte", file.string());
    require<UserError>(id.is_number_unsigned() && id.get<std::uint64_t>() < tokens.size(),
                       "{}: the id of \"{}\" must be from 0 to {}, since there are {} tokens",
                       file.string(), token, std::ssize(tokens) - 1, tokens.size());
    std::string& place = tokens[id.get<std::size_t>()];
    require<UserError>(place.empty(), "{}: \"{}\" and \"{}\" have the same id", file.string(),
                       place, token);
    place = token;
  }
  return tokens;
}

Tokens read_merges(const fs::path& file) {
  Tokens merges;
  for_each_line(file, [&](std::string_view line, std::size_t number) {
    if ((number == 1 && line.starts_with("#version")) || line.empty()) return;
    const auto space = line.find(' ');
    const bool two = space != line.npos && space > 0 && space + 1 < line.size() &&
                     line.find(' ', space + 1) == line.npos && line.find('\0') == line.npos;
    require<UserError>(two, "{}:{}: must be two tokens with a space between them", file.string(),
                       number);
    merges.emplace_back(line);
  });
  require<UserError>(!merges.empty(), "{}: has no merges", file.string());
  return merges;
}

ForeignModel read_huggingface(const fs::path& folder) {
  JsonOptions options(folder / "config.json");
  const Architecture architecture = architecture_of(options);
  Import import{folder, std::move(options), architecture};
  import.config.name = name_of(folder);
  import.config.task.format = DataFormat::none;
  import.config.model.position = PositionKind::learned;
  ForeignModel model;
  model.not_used = architecture >= Architecture::gpt2 ? read_gpt2(import) : read_bert(import);
  import.checkpoint.config = to_toml(import.config);
  begin_run(import.checkpoint, folder / "model.safetensors");
  model.checkpoint = std::move(import.checkpoint);
  return model;
}

}  // namespace qkv
