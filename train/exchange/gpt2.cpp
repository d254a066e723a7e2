#include "core/autograd.h"
#include "core/ops.h"
#include "train/exchange/foreign_model.h"

// GPT-2 (Radford et al. 2019) under the names of Hugging Face's transformers.
namespace qkv {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<std::string>;

Tensor transposed(const Tensor& x) {
  return permute(x, {1, 0}).detach();
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
  require_epsilon(options, "layer_norm_epsilon", model.kind);
  model.activation = activation_of(options, "activation_function", ActivationKind::gelu_tanh);
  model.dropout = dropout_of(options, "resid_pdrop", {"embd_pdrop", "attn_pdrop"});
  import.config.head.tied = true;
  import.config.task.kind = TaskKind::language_model;
}

/// Convolutions of one position, whose weights are [in, out].
void take_conv1d(Import& import, TensorSource& source, const std::string& path,
                 const std::string& name, Index in, Index out) {
  import.parameter(path + ".weight") = transposed(source.take(name + ".weight", {in, out}));
  import.parameter(path + ".bias") = source.take(name + ".bias", {out});
}

void take_gpt2_layer(Import& import, TensorSource& source, Index layer) {
  const Index width = import.config.model.width, hidden = import.config.model.feed_forward;
  const std::string block = fmt::format("decoder.layers.{}.", layer),
                    theirs = fmt::format("h.{}.", layer);
  take_layer(import, source, block + "norm_1", theirs + "ln_1", {width});
  const auto weights =
      split(transposed(source.take(theirs + "attn.c_attn.weight", {width, 3 * width})), 0, 3);
  const auto biases = split(source.take(theirs + "attn.c_attn.bias", {3 * width}), 0, 3);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string path = fmt::format("{}attention.w_{}", block, "qkv"[i]);
    import.parameter(path + ".weight") = weights[i].detach();
    import.parameter(path + ".bias") = biases[i].detach();
  }
  take_conv1d(import, source, block + "attention.w_o", theirs + "attn.c_proj", width, width);
  take_layer(import, source, block + "norm_2", theirs + "ln_2", {width});
  take_conv1d(import, source, block + "feed_forward.w_1", theirs + "mlp.c_fc", width, hidden);
  take_conv1d(import, source, block + "feed_forward.w_2", theirs + "mlp.c_proj", hidden, width);
}

void require_gpt2_tokenizer(const Import& import) {
  require_tokenizer(import, "GPT2Tokenizer", "merges the bytes of pieces of text");
  const auto options = JsonOptions::if_there(import.folder / "tokenizer_config.json");
  for (const char* flag : {"add_prefix_space", "add_bos_token", "add_eos_token"})
    options.require_flag(flag, false);
}

/// The masks of old files.
bool is_unused_of_gpt2(std::string_view name) {
  return name.starts_with("h.") &&
         (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
}

}  // namespace

Tokens read_gpt2(Import& import) {
  set_gpt2_options(import);
  const ModelOptions& model = import.config.model;
  import.config.task.tokenizer = TokenizerKind::byte_level;
  import.config.task.lower_case = false;
  require_gpt2_tokenizer(import);
  TensorSource source(weights_file(import), "transformer.");
  const fs::path vocab = tokenizer_file(import, "vocab.json");
  Tokens tokens = read_vocab_json(vocab);
  complete_vocabulary(import, source, "wte.weight", vocab, tokens);
  import.checkpoint.vocabulary = {{"tokens", tokens},
                                  { "merges",
                                    read_merges(tokenizer_file(import, "merges.txt"), tokens) }};
  const Tensor table = source.take("wte.weight", {std::ssize(tokens), model.width});
  import.parameter("embedding.weight") = table;
  import.parameter("positions.weight") = source.take("wpe.weight", {model.max_length, model.width});
  for (Index layer = 0; layer < model.layers; ++layer) take_gpt2_layer(import, source, layer);
  take_layer(import, source, "decoder.norm", "ln_f", {model.width});
  source.take_copy("lm_head.weight", table);
  return source.left(is_unused_of_gpt2);
}

}  // namespace qkv
