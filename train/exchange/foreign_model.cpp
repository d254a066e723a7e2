#include "train/exchange/foreign_model.h"

#include <array>
#include <utility>

namespace qkv {

std::filesystem::path weights_file(const Import& import) {
  const std::string folder = import.folder.string();
  std::filesystem::path file = import.folder / "model.safetensors";
  if (std::filesystem::exists(file)) return file;
  for (const auto& [other, what] :
       {std::pair("model.safetensors.index.json", "weights in several files"),
        std::pair("pytorch_model.bin", "weights as a pickle, which can run code"),
        std::pair("pytorch_model.bin.index.json", "weights as pickles, which can run code")})
    require<UserError>(!std::filesystem::exists(import.folder / other),
                       "{}: has {} ({}) and no model.safetensors; write one with transformers: "
                       "python3 -c \"import transformers; transformers.{}.from_pretrained('{}')"
                       ".save_pretrained('{}', max_shard_size='1TB')\"",
                       folder, what, other, import.model_class, folder, folder);
  throw UserError(fmt::format("{}: has no model.safetensors", folder));
}

std::filesystem::path tokenizer_file(const Import& import, std::string_view name) {
  const std::string folder = import.folder.string();
  std::filesystem::path file = import.folder / name;
  if (std::filesystem::exists(file)) return file;
  require<UserError>(!std::filesystem::exists(import.folder / "tokenizer.json"),
                     "{}: has a tokenizer.json and no {}; write it with tokenizers: python3 -c "
                     "\"import tokenizers; tokenizers.Tokenizer.from_file('{}/tokenizer.json')"
                     ".model.save('{}')\"",
                     folder, name, folder, folder);
  throw UserError(fmt::format("{}: has no {}", folder, name));
}

void complete_vocabulary(Import& import, const TensorSource& source, const std::string& table,
                         const std::filesystem::path& file, std::vector<std::string>& tokens) {
  const Index rows = source.rows(table);
  import.options.demand(import.options.integer("vocab_size", 1, rows, rows) == rows, "vocab_size",
                        fmt::format("must be {}, the rows of {}", rows, table));
  import.added_tokens = take_added_tokens(tokens, import.folder, rows - 1);
  require<UserError>(std::ssize(tokens) <= rows, "{}: has {} tokens; {} has {} rows", file.string(),
                     tokens.size(), table, rows);
  name_further_rows(tokens, rows);
}

void require_tokenizer(const Import& import, std::string_view name, std::string_view cuts) {
  const std::string slow(name), fast = slow + "Fast";
  for (const JsonOptions& options :
       {import.options, JsonOptions::if_there(import.folder / "tokenizer_config.json")}) {
    const nlohmann::json& found = options.find("tokenizer_class");
    options.demand(found.is_null() || found == slow || found == fast, "tokenizer_class",
                   fmt::format("must be {} or {}, which {}; other tokenizers are not supported",
                               slow, fast, cuts));
  }
}

ActivationKind activation_of(const JsonOptions& options, const std::string& key,
                             ActivationKind usual) {
  static constexpr std::array<std::string_view, 5> names = {"gelu", "relu", "gelu_new",
                                                            "gelu_pytorch_tanh", "gelu_fast"};
  if (options.find(key).is_null()) return usual;
  const auto name = options.choice(key, names);
  return name == 0   ? ActivationKind::gelu
         : name == 1 ? ActivationKind::relu
                     : ActivationKind::gelu_tanh;
}

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

void require_epsilon(const JsonOptions& options, const std::string& key, ModelKind kind) {
  const double epsilon = norm_epsilon(kind);
  options.demand(options.number(key, 0, 1, epsilon) == epsilon, key,
                 fmt::format("must be {}, as the architecture has it", epsilon));
}

void take_layer(Import& import, TensorSource& source, const std::string& path,
                const std::string& name, const Shape& shape) {
  import.parameter(path + ".weight") = source.take(name + ".weight", shape);
  import.parameter(path + ".bias") = source.take(name + ".bias", {shape[0]});
}

}  // namespace qkv
